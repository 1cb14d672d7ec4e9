{#- On Redshift: a row for each partition of a topic, on every node. -#}
{{ config(dist="all", sort="bronze_table") }}

with

ranges as (

    select * from {{ ref("rpt_ingest_commits") }}

),

ranges_held as (

    select * from {{ ref("int_ops__ranges_held") }}

),

gaps as (

    select * from {{ ref("rpt_ingest_gaps") }}

),

quarantine as (

    select * from {{ ref("int_ops__quarantined_records_sorted") }}

),

tables as (

    select
        bronze_table,
        max(commit_id) as last_commit_id
    from ranges
    group by bronze_table

),

partitions as (

    select
        bronze_table,
        kafka_topic,
        kafka_topic_id,
        kafka_partition,
        -- A backfill may leave offsets between it and the stream that nobody took.
        cast(
            coalesce(
                max(case when commit_kind <> 'backfill' then end_offset end)
                - min(case when commit_kind <> 'backfill' then first_offset end),
                0
            )
            + sum(
                case
                    when commit_kind = 'backfill' then end_offset - first_offset
                    else 0
                end
            ) as bigint
        ) as offset_count,
        min(first_offset) as first_offset,
        max(end_offset) as end_offset,
        count(*) as commit_count,
        min(committed_at) as first_committed_at,
        max(committed_at) as last_committed_at
    from ranges
    group by bronze_table, kafka_topic, kafka_topic_id, kafka_partition

),

ranges_placed as (

    select
        ranges_held.*,
        tables.last_commit_id,
        case
            when
                ranges_held.end_offset > partitions.first_offset
                and ranges_held.first_offset < partitions.end_offset
                then
                    least(ranges_held.end_offset, partitions.end_offset)
                    - greatest(ranges_held.first_offset, partitions.first_offset)
            else 0
        end as committed_offset_count
    from ranges_held
    inner join tables
        on ranges_held.bronze_table = tables.bronze_table
    left join partitions
        on
            ranges_held.bronze_table = partitions.bronze_table
            and ranges_held.kafka_topic_id = partitions.kafka_topic_id
            and ranges_held.kafka_partition = partitions.kafka_partition

),

stored as (

    select
        *,
        end_offset - first_offset - committed_offset_count as uncommitted_offset_count,
        -- Of a commit that the log, when it was read, had already or will never have. A
        -- later one counts the next time.
        not is_quarantined and coalesce(commit_id, 0) <= last_commit_id as is_old
    from ranges_placed

),

-- A record in quarantine that no commit covers is of a batch that is under way, or that
-- was cut off and is removed when the stream starts again.
counted as (

    select
        bronze_table,
        kafka_topic,
        kafka_topic_id,
        kafka_partition,
        cast(
            sum(
                case
                    when not is_quarantined then committed_offset_count * copy_count
                    else 0
                end
            ) as bigint
        ) as bronze_row_count,
        cast(
            sum(
                case
                    when is_quarantined then committed_offset_count * copy_count
                    else 0
                end
            ) as bigint
        ) as quarantined_count,
        cast(
            sum(
                case
                    when is_old then uncommitted_offset_count * copy_count
                    else 0
                end
            ) as bigint
        ) as uncommitted_count
    from stored
    group by bronze_table, kafka_topic, kafka_topic_id, kafka_partition

),

-- How many of the absent offsets were records is known of a commit, not of a partition:
-- each partition answers for as many as it can have lost.
absent_by_commit as (

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        commit_id,
        sum(absent_count) as absent_count,
        sum(case when is_given_up then absent_count else 0 end) as given_up_count,
        case
            when max(case when is_given_up then 1 else 0 end) = 1 then 0
            when max(commit_absent_count) <= max(commit_empty_count) then 0
            when
                sum(absent_count) < max(commit_absent_count) - max(commit_empty_count)
                then sum(absent_count)
            else max(commit_absent_count) - max(commit_empty_count)
        end as gap_count
    from gaps
    group by bronze_table, kafka_topic_id, kafka_partition, commit_id

),

absent_by_partition as (

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        sum(absent_count) as absent_count,
        sum(given_up_count) as given_up_count,
        sum(gap_count) as gap_count
    from absent_by_commit
    group by bronze_table, kafka_topic_id, kafka_partition

),

-- What became of the records that were once quarantined.
decided as (

    select
        kafka_topic,
        _kafka_topic_id as kafka_topic_id,
        _kafka_partition as kafka_partition,
        count(case when quarantine_state = 'replayed' then 1 end) as replayed_count,
        count(case when quarantine_state = 'discarded' then 1 end) as discarded_count
    from quarantine
    group by kafka_topic, _kafka_topic_id, _kafka_partition

),

-- Rows that no commit explains may be of a partition, or a topic, that has no commit.
places as (

    select
        partitions.first_offset,
        partitions.end_offset,
        partitions.first_committed_at,
        partitions.last_committed_at,
        coalesce(partitions.bronze_table, counted.bronze_table) as bronze_table,
        coalesce(partitions.kafka_topic, counted.kafka_topic) as kafka_topic,
        coalesce(partitions.kafka_topic_id, counted.kafka_topic_id) as kafka_topic_id,
        coalesce(partitions.kafka_partition, counted.kafka_partition)
            as kafka_partition,
        coalesce(partitions.commit_count, 0) as commit_count,
        coalesce(partitions.offset_count, 0) as offset_count,
        coalesce(counted.bronze_row_count, 0) as bronze_row_count,
        coalesce(counted.quarantined_count, 0) as quarantined_count,
        coalesce(counted.uncommitted_count, 0) as uncommitted_count
    from partitions
    full outer join counted
        on
            partitions.bronze_table = counted.bronze_table
            and partitions.kafka_topic = counted.kafka_topic
            and partitions.kafka_topic_id = counted.kafka_topic_id
            and partitions.kafka_partition = counted.kafka_partition
    where partitions.bronze_table is not null or counted.uncommitted_count > 0

),

balanced as (

    select
        places.*,
        coalesce(absent_by_partition.absent_count, 0) as absent_count,
        coalesce(absent_by_partition.given_up_count, 0) as given_up_count,
        coalesce(absent_by_partition.gap_count, 0) as gap_count,
        coalesce(decided.replayed_count, 0) as replayed_count,
        coalesce(decided.discarded_count, 0) as discarded_count
    from places
    left join absent_by_partition
        on
            places.bronze_table = absent_by_partition.bronze_table
            and places.kafka_topic_id = absent_by_partition.kafka_topic_id
            and places.kafka_partition = absent_by_partition.kafka_partition
    left join decided
        on
            places.kafka_topic = decided.kafka_topic
            and places.kafka_topic_id = decided.kafka_topic_id
            and places.kafka_partition = decided.kafka_partition

),

-- An empty range has no first and no last offset.
with_bounds as (

    select
        *,
        case when offset_count > 0 then first_offset end as first_taken_offset,
        case when offset_count > 0 then end_offset - 1 end as last_taken_offset
    from balanced

),

final as (

    select
        -- keys
        bronze_table,
        kafka_topic_id,
        kafka_partition,

        -- attributes
        kafka_topic,

        -- numbers
        first_taken_offset as first_offset,
        last_taken_offset as last_offset,
        commit_count,
        offset_count,
        bronze_row_count,
        quarantined_count,
        replayed_count,
        discarded_count,
        cast(absent_count - given_up_count - gap_count as bigint) as empty_count,
        cast(given_up_count as bigint) as given_up_count,
        cast(gap_count as bigint) as gap_count,
        -- Stored records, less the offsets with a stored record.
        cast(
            bronze_row_count + quarantined_count - offset_count + absent_count as bigint
        ) as duplicate_count,
        uncommitted_count,

        -- times
        first_committed_at,
        last_committed_at
    from with_bounds

)

select * from final
