{#- Step 3: the versions of each row, from one change to the next with other values, with the
    columns of a history. -#}
{% macro row_versions(key, attributes, tracked, carried) -%}
{%- set keys = key | join(", ") -%}
{%- set in_order = "partition by " ~ keys ~ " order by _position" -%}
{#- The SQL of each attribute's value. -#}
{%- set value = {} -%}
{%- for attribute in attributes -%}
    {%- do value.update({attribute: carried.get(attribute, {"value": attribute}).value}) -%}
{%- endfor -%}
{#- Columns that a version takes from its newest change, with their SQL. -#}
{%- set newest = {"is_incomplete": "_is_incomplete"} -%}
{%- for attribute in attributes if attribute not in tracked -%}
    {%- do newest.update({attribute: value[attribute]}) -%}
{%- endfor -%}
-- Step 3 of 3: the versions of each row.
compared_changes as (

    select
        *,
        lag(is_deleted) over ({{ in_order }}) as _follows_deleted,
        lag(_is_incomplete) over ({{ in_order }}) as _previous_is_incomplete
        {%- for attribute in attributes %},
        lag({{ value[attribute] }}) over ({{ in_order }}) as _previous_{{ attribute }}
        {%- endfor %}
        {%- for column, sql in newest.items() %},
        last_value({{ sql }}) over (
            {{ in_order }}
            rows between unbounded preceding and unbounded following
        ) as _last_{{ column }}
        {%- endfor %}
    from distinct_changes

),

marked_changes as (

    select
        *,
        case
            when _follows_deleted is null then 1
            when _follows_deleted <> is_deleted then 1
            when is_deleted then 0
            {%- for attribute in tracked %}
            when not coalesce(
                _previous_{{ attribute }} = {{ value[attribute] }},
                _previous_{{ attribute }} is null and {{ value[attribute] }} is null
            ) then 1
            {%- endfor %}
            else 0
        end as _begins_version
    from compared_changes

),

version_rows as (

    select
        *,
        lead(_since) over ({{ in_order }}) as _until,
        lead(_position) over ({{ in_order }}) as _until_position
        {%- for column in newest %},
        case
            when lead(_position) over ({{ in_order }}) is null then _last_{{ column }}
            else lead(_previous_{{ column }}) over ({{ in_order }})
        end as _newest_{{ column }}
        {%- endfor %}
    from marked_changes
    where _begins_version = 1

),

row_versions as (

    select
        -- keys
        case
            when _is_current_version then version_key
            else cast({{ key_text(key) }} || '-' || _position as varchar(512))
        end as version_key,
        {{ key | join(",\n        ") }},

        -- attributes
        -- A delete has no values: the last ones remain.
        {%- for attribute in attributes %}
        case
            when is_deleted and not _is_current_version then _previous_{{ attribute }}
            {%- if attribute in newest %}
            when not is_deleted then _newest_{{ attribute }}
            {%- endif %}
            else {{ value[attribute] }}
        end as {{ attribute }},
        {%- endfor %}

        -- flags
        is_deleted,
        case
            when is_deleted and not _is_current_version
                then coalesce(_previous_is_incomplete, true)
            when not is_deleted then _newest_is_incomplete
            else _is_incomplete
        end as is_incomplete,
        _until is null as is_current,

        -- times
        case when _is_current_version then valid_from_at else _since end as valid_from_at,
        _until as valid_to_at,

        -- metadata
        cast(
            case when _is_current_version then valid_from_position else _position end
            as varchar(160)
        ) as valid_from_position,
        cast(_until_position as varchar(160)) as valid_to_position,
        -- Only the current version has the last applied position.
        cast(case when _until is null then _row_position end as varchar(160))
            as seen_to_position,
        case when _until is null then _row_at end as seen_to_at,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from version_rows

)
{%- endmacro %}
