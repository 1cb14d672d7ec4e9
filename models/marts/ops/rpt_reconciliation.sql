{#- On Redshift: a row for each count of a table, on every node. -#}
{{ config(dist="all", sort="stream_name") }}

with

compared as (

    select * from {{ ref("int_ops__reconciliations_compared") }}

),

quarantined as (

    select
        stream_name,
        count(*) as quarantined_count
    from {{ ref("int_ops__quarantined_records_sorted") }}
    where quarantine_state = 'open' and stream_name is not null
    group by stream_name

),

with_quarantined as (

    select
        compared.*,
        quarantined.quarantined_count
    from compared
    left join quarantined
        on compared.stream_name = quarantined.stream_name

),

validated as (

    select
        *,
        cast(held_row_count - source_row_count as bigint) as row_difference,
        case
            when held_row_count is null then 'no_history'
            when held_row_count = source_row_count and quarantined_count > 0
                then 'stale'
            when held_row_count = source_row_count then 'equal'
            when is_before_capture then 'before_capture'
            when seen_after_seconds < {{ var("reconciliation_grace_seconds") }}
                then 'awaited'
            else 'different'
        end as reconciliation_state
    from with_quarantined

),

placed as (

    select
        *,
        max(case when reconciliation_state <> 'awaited' then reconciled_at end) over (
            partition by stream_name
        ) as newest_at
    from validated

),

final as (

    select
        -- keys
        stream_name,
        reconciled_at,

        -- attributes
        bronze_table,
        database_name,
        source_table,
        log_position,
        cast(reconciliation_state as varchar(16)) as reconciliation_state,

        -- numbers
        source_row_count,
        held_row_count,
        row_difference,

        -- flags
        coalesce(reconciled_at = newest_at, false) as is_newest
    from placed

)

select * from final
