{#- Step 2: of the records at one position the one that was read last, with `_since`, when what it
    says begins, and what of its row was seen so far. A value that it leaves as it was is that of
    the last change that has it, in `_filled_<attribute>`; where no change ever had it, nobody
    knows it, and the change `_is_incomplete`. -#}
{% macro distinct_changes(key, kept) -%}
{%- set of_row = "partition by " ~ key | join(", ") -%}
{%- set unknown = ["is_incomplete"] -%}
{%- for attribute in kept if kept[attribute].may_be_left_out -%}
    {%- do unknown.append(
        "coalesce(_filled_" ~ attribute ~ " = " ~ left_out_value() ~ ", false)"
    ) -%}
{%- endfor -%}
{%- set in_order -%}
{{ of_row }}
                order by
                    _position, _commit_id, _kafka_topic_id, _kafka_partition, _kafka_offset
{%- endset -%}
-- Step 2 of 3: one change at each position.
unseen_changes as (

    select *
    from (
        select
            *,
            max(seen_to_position) over ({{ of_row }}) as _known_to_position
        from ordered_changes
    ) as known_changes
    -- What another run has read meanwhile is in the current version.
    where
        _is_current_version
        or _known_to_position is null
        or _position > _known_to_position

),

single_changes as (

    select *
    from (
        select
            *,
            lead(_position) over (
                {{ in_order }}
            ) as _next_position,
            -- Clocks may step back; the order of changes does not.
            max(_changed_at) over (
                {{ in_order }}
                rows between unbounded preceding and current row
            ) as _since,
            max(_position) over ({{ of_row }}) as _row_position,
            max(_changed_at) over ({{ of_row }}) as _row_at
        from unseen_changes
    ) as followed_changes
    where _next_position is null or _next_position <> _position

),

numbered_values as (

    select
        *
        {%- for attribute in kept %},
        sum(case when {{ kept[attribute].says }} then 1 else 0 end) over (
            {{ of_row }}
            order by _position
            rows between unbounded preceding and current row
        ) as _value_of_{{ attribute }}
        {%- endfor %}
    from single_changes

),

filled_values as (

    select
        *
        {%- for attribute in kept %},
        -- A delete has no values of its row: what comes behind it begins without it.
        first_value({{ attribute }}) over (
            {{ of_row }}, _value_of_{{ attribute }}, is_deleted
            order by _position
            rows between unbounded preceding and unbounded following
        ) as _filled_{{ attribute }}
        {%- endfor %}
    from numbered_values

),

distinct_changes as (

    select
        *,
        {{ unknown | join("\n            or ") }} as _is_incomplete
    from filled_values

)
{%- endmacro %}
