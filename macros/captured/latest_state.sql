{% macro latest_state(history) -%}
    select
        {{ columns_of_state(history) }}
    from {{ history }}
    where is_current and not is_deleted
{%- endmacro %}

{#- Versions with the same timestamp are of one transaction: the last one is the state. -#}
{% macro state_as_of(history, instant) -%}
    select
        {{ columns_of_state(history) }}
    from {{ history }}
    where
        {{ exists_at(instant) }}
{%- endmacro %}

{#- Each instant has one version of each row: the first one is also valid before capture
    began. -#}
{% macro dated_versions(parent, keys=none) -%}
    select
        {{ key_and_attributes(parent) }},
        case
            when
                valid_from_position
                = min(valid_from_position) over (partition by {{ parent.key }})
                then cast('0001-01-01 00:00:00' as timestamp)
            else valid_from_at
        end as effective_from_at,
        coalesce(valid_to_at, cast('9999-12-31 00:00:00' as timestamp)) as effective_to_at
    from {{ parent.relation }} as versions
    {%- if keys %}
    where {{ parent.key }} in ({{ keys }})
    {%- endif %}
{%- endmacro %}

{#- Current rows; deleted rows with their last values. -#}
{% macro newest_versions(parent, keys=none) -%}
    select
        {{ key_and_attributes(parent) }}
    from {{ parent.relation }} as versions
    {%- if parent.get("stream") %}
    where
        is_current
        {%- if keys %}
        and {{ parent.key }} in ({{ keys }})
        {%- endif %}
    {%- endif %}
{%- endmacro %}

{#- The first columns of `dated_versions` and `newest_versions`. -#}
{% macro key_and_attributes(parent) -%}
    {{ parent.key }}
        {%- for column, expression in parent.attributes.items() %},
        {{ expression }} as {{ column }}
        {%- endfor %}
{%- endmacro %}

{#- When a row was created: the commit of its first change. A row from a snapshot is older than
    the snapshot: it has the time in the row itself. A position with a c is that of a change, not
    of a snapshot. -#}
{% macro recorded_at(key, happened_at) -%}
    {%- set of_row = "over (partition by " ~ key ~ ")" -%}
    {%- set first_at = "min(valid_from_at) " ~ of_row -%}
    case
            when
                min(valid_from_position) {{ of_row }} not like '%c%'
                and {{ happened_at }} < {{ first_at }}
                then {{ happened_at }}
            else {{ first_at }}
        end
{%- endmacro %}

{% macro valid_at(version, instant) -%}
    {{ instant }} >= {{ version }}.effective_from_at
            and {{ instant }} < {{ version }}.effective_to_at
{%- endmacro %}

{#- A version that is valid at both instants appears twice: it did not change. -#}
{% macro changes_between(history, key, first_instant, last_instant) -%}
    {%- set keys = key | join(", ") -%}
    {%- set columns = columns_of_state(history) -%}
    select
        version_key,
        {{ columns }},
        is_before
    from (
        select
            *,
            count(*) over (partition by {{ keys }}, version_key) as moment_count
        from (
            select
                version_key,
                {{ columns }},
                true as is_before
            from {{ history }}
            where {{ exists_at(first_instant) }}
            union all
            select
                version_key,
                {{ columns }},
                false as is_before
            from {{ history }}
            where {{ exists_at(last_instant) }}
        ) as moments
    ) as counted
    where moment_count = 1
{%- endmacro %}

{% macro exists_at(instant) -%}
    not is_deleted
            and valid_from_at <= {{ instant }}
            and (valid_to_at > {{ instant }} or valid_to_at is null)
{%- endmacro %}

{#- The columns of a state, in the order of the history's YAML. -#}
{% macro columns_of_state(history) -%}
    {{ return(names_of_state(history) | join(",\n        ")) }}
{%- endmacro %}

{#- The same as a list. -#}
{% macro names_of_state(
    history, names=["is_incomplete", "valid_from_at", "_commit_id"]
) -%}
    {%- if not execute -%}
        {{ return(["*"]) }}
    {%- endif -%}
    {%- set columns = [] -%}
    {%- for column in node_of(history).columns
        if column in names or column not in columns_of_history() -%}
        {%- do columns.append(column) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro %}
