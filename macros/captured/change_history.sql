{% macro change_history(changes, stream, key, left_out=[]) -%}
    {%- set increment = begin_increment(settings=captured_settings(stream)) -%}
    {%- set attributes = attributes_of_history(key) -%}
    {%- do look_at_new_changes(increment, changes, stream, key) -%}
    {{ versions_of_changes(
        changes_and_held_versions(increment, changes, stream, key, attributes),
        key,
        attributes,
        chosen_attributes(stream, attributes, "track", attributes),
        kept_values(
            attributes,
            left_out,
            chosen_attributes(stream, attributes, "ignore_null_updates", []),
        ),
        truncates_until_now(increment, stream),
    ) }}
{%- endmacro %}

{#- `placed`, `positioned`, `ordered`: where each change lies in its row's own order; a tombstone lies behind
    what it follows, and a change whose transaction was open while a snapshot was taken, and
    committed after it, behind that snapshot. `emptied`: with a delete of each row that a truncate
    found. `unique_changes`: without what was sent again.
    `spans`: what differs from the row before. `versions`: until when each holds. -#}
{% macro versions_of_changes(changes, key, attributes, tracked, kept, truncates=none) -%}
    {%- set keys = key | join(", ") -%}
with

changes as (

    {{ changes }}

),

placed as (

    select
        *,
        -- A tombstone has but Kafka's time, and what it follows says when the row went.
        case
            when is_tombstone and lag(is_deleted) over (
                partition by {{ keys }}, _kafka_topic_id, _kafka_partition
                order by _kafka_offset, _commit_id
            ) then null
            else source_committed_at
        end as changed_at,
        max(case when is_snapshot then source_position end) over (
            partition by {{ keys }}, _kafka_topic_id, _kafka_partition
            order by _kafka_offset, _commit_id
            rows between unbounded preceding and current row
        ) as snapshot_position,
        max(case when is_snapshot then source_committed_at end) over (
            partition by {{ keys }}, _kafka_topic_id, _kafka_partition
            order by _kafka_offset, _commit_id
            rows between unbounded preceding and current row
        ) as snapshot_at
    from changes

),

positioned as (

    select
        *,
        case
            when was_held then seen_to_position
            when is_tombstone then null
            when is_snapshot then source_position
            when source_position < snapshot_position and source_committed_at > snapshot_at
                then snapshot_position || 's' || source_position
            else source_position || 'c'
        end as position_of_change
    from placed

),

ordered as (

    select
        *,
        -- Behind the last change before it, whatever was sent again; before all, where there
        -- is none.
        coalesce(
            position_of_change,
            substring(
                max(
                    lpad(cast(_kafka_offset as varchar(20)), 20, '0') || position_of_change
                ) over (
                    partition by {{ keys }}, _kafka_topic_id, _kafka_partition
                    order by _kafka_offset, _commit_id
                    rows between unbounded preceding and current row
                ),
                21
            ) || 't',
            ''
        ) as order_position
    from positioned

),
{% if truncates %}
{{ emptied_rows(truncates, key, attributes) }}
{%- endif %}
numbered as (

    select
        *,
        row_number() over (
            partition by {{ keys }}, was_held, order_position
            order by
                _commit_id desc, _kafka_topic_id desc, _kafka_partition desc,
                _kafka_offset desc
        ) as delivery,
        max(changed_at) over (
            partition by {{ keys }}, was_held, order_position
        ) as time_of_place,
        max(case when was_held then seen_to_position end) over (
            partition by {{ keys }}
        ) as held_to_position
    from {{ "emptied" if truncates else "ordered" }}

),

unique_changes as (

    select
        *,
        case when was_held then 0 else 1 end as place,
        max(order_position) over (
            partition by {{ keys }}
        ) as newest_position,
        -- Clocks may step back; the order of changes does not.
        max(case when was_held then valid_from_at else time_of_place end) over (
            partition by {{ keys }}
            order by case when was_held then 0 else 1 end, order_position
            rows between unbounded preceding and current row
        ) as since
    from numbered
    where
        delivery = 1
        -- What another run has read meanwhile is in the version that holds.
        and (was_held or held_to_position is null or order_position > held_to_position)

),
{% if kept %}
{{ filled_values(key, attributes, kept) }}
{%- endif %}
compared as (

    select
        *,
        lag(is_deleted) over (
            partition by {{ keys }} order by place, order_position
        ) as was_deleted
        {%- for attribute in tracked %},
        lag({{ attribute }}) over (
            partition by {{ keys }} order by place, order_position
        ) as was_{{ attribute }}
        {%- endfor %}
    from {{ "filled" if kept else "unique_changes" }}

),

spans as (

    select
        *,
        case
            when was_deleted is null then 1
            when was_deleted <> is_deleted then 1
            when is_deleted then 0
            {%- for attribute in tracked %}
            when not coalesce(
                was_{{ attribute }} = {{ attribute }},
                was_{{ attribute }} is null and {{ attribute }} is null
            ) then 1
            {%- endfor %}
            else 0
        end as is_change
    from compared

),
{% if tracked | length < attributes | length %}
{{ newest_untracked(key, attributes, tracked) }}
{%- endif %}
versions as (

    select
        *,
        lead(since) over (
            partition by {{ keys }} order by place, order_position
        ) as until,
        lead(order_position) over (
            partition by {{ keys }} order by place, order_position
        ) as until_position,
        lag(is_incomplete) over (
            partition by {{ keys }} order by place, order_position
        ) as was_incomplete
        {%- for attribute in attributes %},
        lag({{ attribute }}) over (
            partition by {{ keys }} order by place, order_position
        ) as last_{{ attribute }}
        {%- endfor %}
    from {{ "newest" if tracked | length < attributes | length else "spans" }}
    where is_change = 1

),

final as (

    select
        -- keys
        case
            when was_held then version_key
            else cast({{ key_text(key) }} || '-' || order_position as varchar(512))
        end as version_key,
        {{ keys }},

        -- attributes
        -- A delete says nothing of its row: what it held last stays.
        {%- for attribute in attributes %}
        case
            when is_deleted and not was_held then last_{{ attribute }}
            else {{ attribute }}
        end as {{ attribute }},
        {%- endfor %}

        -- flags
        is_deleted,
        case
            when is_deleted and not was_held then coalesce(was_incomplete, true)
            else is_incomplete
        end as is_incomplete,
        until is null as is_current,

        -- times
        since as valid_from_at,
        until as valid_to_at,

        -- metadata
        cast(
            case when was_held then valid_from_position else order_position end
            as varchar(160)
        ) as valid_from_position,
        cast(until_position as varchar(160)) as valid_to_position,
        -- Of a version that ended, the one behind it tells.
        cast(case when until is null then newest_position end as varchar(160))
            as seen_to_position,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from versions

)

select * from final
{%- endmacro %}
