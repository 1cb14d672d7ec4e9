{#- Step 2: of the records at one position the one that was read last, with `_since`, when what it
    says begins, and what of its row was seen so far. -#}
{% macro distinct_changes(key) -%}
{%- set keys = key | join(", ") -%}
{%- set in_order -%}
            partition by {{ keys }}
            order by
                _position, _commit_id, _kafka_topic_id, _kafka_partition, _kafka_offset
{%- endset -%}
-- Step 2 of 3: one change at each position.
unseen_changes as (

    select *
    from (
        select
            *,
            max(seen_to_position) over (partition by {{ keys }}) as _known_to_position
        from ordered_changes
    ) as known_changes
    -- What another run has read meanwhile is in the current version.
    where
        _is_current_version
        or _known_to_position is null
        or _position > _known_to_position

),

distinct_changes as (

    select *
    from (
        select
            *,
            lead(_position) over (
                {{ in_order | indent(4) }}
            ) as _next_position,
            -- Clocks may step back; the order of changes does not.
            max(_changed_at) over (
                {{ in_order | indent(4) }}
                rows between unbounded preceding and current row
            ) as _since,
            max(_position) over (partition by {{ keys }}) as _row_position,
            max(_changed_at) over (partition by {{ keys }}) as _row_at
        from unseen_changes
    ) as followed_changes
    where _next_position is null or _next_position <> _position

)
{%- endmacro %}
