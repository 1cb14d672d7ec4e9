{#- Step 1: each change with `_position`, which orders the changes of its row, and `_changed_at`,
    its time, or null. A truncate becomes a delete of each row that has a change before it. Within
    a Kafka partition records are compared by offset. `is_in_order`: no change lies before a
    snapshot's position. -#}
{% macro ordered_changes(key, attributes, truncates, is_in_order=false) -%}
{%- set keys = key | join(", ") -%}
{%- set columns -%}
        change_kind,
        is_deleted,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id,
        _is_current_version,
        is_incomplete,
        version_key,
        valid_from_at,
        valid_from_position,
        seen_to_position
{%- endset -%}
{%- set by_offset -%}
            partition by {{ keys }}, _kafka_topic_id, _kafka_partition
            order by _kafka_offset, _commit_id
{%- endset -%}
{%- set until_now = "rows between unbounded preceding and current row" -%}
{%- set own_position -%}
case
            when _is_current_version then seen_to_position
            when is_tombstone then null
            when is_snapshot then source_position
            {%- if not is_in_order %}
            when
                source_position < substring(_snapshot, 1, length(source_position))
                and cast(source_committed_at as varchar(32))
                >= substring(_snapshot, length(source_position) + 1)
                then substring(_snapshot, 1, length(source_position))
                    || 's' || source_position
            {%- endif %}
            else source_position || 'c'
        end
{%- endset -%}
-- Step 1 of 3: the position of each change among those of its row.
read_changes as (

    select
        *,
        lag(is_deleted) over (
            {{ by_offset }}
        ) as _follows_delete
        {%- if not is_in_order %},
        -- The newest snapshot of the row so far: its position and time.
        max(
            case
                when is_snapshot
                    then source_position || cast(source_committed_at as varchar(32))
            end
        ) over (
            {{ by_offset }}
            {{ until_now }}
        ) as _snapshot
        {%- endif %}
    from changes

),

placed_changes as (

    select
        *,
        -- c: a change; s: after a snapshot that was taken while its transaction was open.
        {% if is_in_order -%}
        {{ own_position }} as _own_position
        {%- else -%}
        -- A record that is sent again keeps its position.
        first_value(
            {{ own_position | indent(4) }}
        ) over (
            partition by
                {{ keys }}, _kafka_topic_id, _kafka_partition,
                source_position, is_snapshot, is_tombstone
            order by _kafka_offset, _commit_id
            {{ until_now }}
        ) as _own_position
        {%- endif %}
    from read_changes

),

{{ "placed_rows" if truncates else "ordered_changes" }} as (

    select
        {{ (key + attributes) | join(",\n        ") }},
        {{ columns }},
        -- b: a tombstone, after the preceding change; first, if there is none.
        coalesce(
            _own_position,
            substring(
                max(
                    lpad(cast(_kafka_offset as varchar(20)), 20, '0') || _own_position
                ) over (
                    {{ by_offset | indent(8) }}
                    {{ until_now }}
                ),
                21
            ) || 'b',
            ''
        ) as _position,
        -- A tombstone has Kafka's time; the delete before it has the database's.
        case
            when not is_tombstone or not coalesce(_follows_delete, false)
                then source_committed_at
        end as _changed_at
    from placed_changes

)
{%- if truncates %},

truncates as (

    {{ truncates }}

),

first_positions as (

    select
        {{ keys }},
        min(_position) as first_position
    from placed_rows
    group by {{ keys }}

),

ordered_changes as (

    select * from placed_rows
    union all
    -- A truncate has no key: it deletes each row with a change before it.
    select
        {%- for column in key %}
        first_positions.{{ column }},
        {%- endfor %}
        {%- for attribute in attributes %}
        null as {{ attribute }},
        {%- endfor %}
        'truncate' as change_kind,
        true as is_deleted,
        truncates._kafka_topic_id,
        truncates._kafka_partition,
        truncates._kafka_offset,
        truncates._kafka_timestamp,
        truncates._ingested_at,
        truncates._commit_id,
        false as _is_current_version,
        false as is_incomplete,
        null as version_key,
        null as valid_from_at,
        null as valid_from_position,
        null as seen_to_position,
        truncates.source_position || 'c' as _position,
        truncates.source_committed_at as _changed_at
    from first_positions
    inner join truncates
        on first_positions.first_position < truncates.source_position || 'c'

)
{%- endif %}
{%- endmacro %}
