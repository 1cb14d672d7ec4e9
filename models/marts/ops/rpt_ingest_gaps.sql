{#- On Redshift: few rows or none, on every node. -#}
{{ config(dist="all", sort="first_offset") }}

with

ranges as (

    select * from {{ ref("rpt_ingest_commits") }}
    where end_offset > first_offset

),

ranges_held as (

    select * from {{ ref("int_ops__ranges_held") }}

),

backfills as (

    select * from ranges
    where commit_kind = 'backfill'

),

partitions as (

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        min(first_offset) as first_offset,
        max(end_offset) as end_offset
    from ranges
    group by bronze_table, kafka_topic_id, kafka_partition

),

-- Ranges beyond the known commits belong to a commit in progress.
stored as (

    select
        ranges_held.bronze_table,
        ranges_held.kafka_topic_id,
        ranges_held.kafka_partition,
        greatest(ranges_held.first_offset, partitions.first_offset) as first_offset,
        least(ranges_held.end_offset, partitions.end_offset) as end_offset
    from ranges_held
    inner join partitions
        on
            ranges_held.bronze_table = partitions.bronze_table
            and ranges_held.kafka_topic_id = partitions.kafka_topic_id
            and ranges_held.kafka_partition = partitions.kafka_partition
            and ranges_held.end_offset > partitions.first_offset
            and ranges_held.first_offset < partitions.end_offset

),

-- The borders of the commits stand among the records, so that a gap is of one commit
-- and one at either end of a partition shows. Behind a border its own offset is the
-- next to come, behind a range of records the one after it.
landmarks as (

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        first_offset as kafka_offset,
        end_offset as expected_offset,
        cast(null as bigint) as range_offset
    from stored

    union all

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        first_offset as kafka_offset,
        first_offset as expected_offset,
        first_offset as range_offset
    from ranges

    union all

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        end_offset as kafka_offset,
        end_offset as expected_offset,
        end_offset as range_offset
    from ranges

),

-- Landmarks with equal offset and expected offset are equivalent, in any order. A range
-- may reach beyond those that begin later.
in_order as (

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        max(expected_offset) over (
            partition by bronze_table, kafka_topic_id, kafka_partition
            order by kafka_offset asc, expected_offset asc
            rows between unbounded preceding and current row
        ) as reached_offset,
        lead(kafka_offset) over (
            partition by bronze_table, kafka_topic_id, kafka_partition
            order by kafka_offset asc, expected_offset asc
        ) as next_offset,
        max(range_offset) over (
            partition by bronze_table, kafka_topic_id, kafka_partition
            order by kafka_offset asc, expected_offset asc
            rows between unbounded preceding and current row
        ) as range_first_offset
    from landmarks

),

gaps as (

    select
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        reached_offset as first_offset,
        next_offset as end_offset,
        range_first_offset,
        next_offset - reached_offset as absent_count
    from in_order
    where next_offset > reached_offset

),

-- A gap between two commits is in none, and nothing explains it. What lies between a
-- backfill and what was taken later was never asked for: that is no gap.
in_commits as (

    select
        gaps.*,
        ranges.commit_id,
        ranges.commit_kind,
        gaps.end_offset - 1 as last_offset,
        coalesce(ranges.commit_empty_count, 0) as commit_empty_count,
        sum(gaps.absent_count) over (
            partition by gaps.bronze_table, ranges.commit_id
        ) as commit_absent_count
    from gaps
    left join ranges
        on
            gaps.bronze_table = ranges.bronze_table
            and gaps.kafka_topic_id = ranges.kafka_topic_id
            and gaps.kafka_partition = ranges.kafka_partition
            and gaps.range_first_offset = ranges.first_offset
    left join backfills
        on
            gaps.bronze_table = backfills.bronze_table
            and gaps.kafka_topic_id = backfills.kafka_topic_id
            and gaps.kafka_partition = backfills.kafka_partition
            and gaps.range_first_offset = backfills.end_offset
    where ranges.commit_id is not null or backfills.commit_id is null

),

explained as (

    select
        *,
        coalesce(commit_kind = 'gap', false) as is_given_up,
        coalesce(commit_kind = 'gap', false)
        or commit_absent_count <= commit_empty_count as is_explained
    from in_commits

),

final as (

    select
        -- keys
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        first_offset,

        -- attributes
        commit_id,

        -- numbers
        last_offset,
        absent_count,
        cast(commit_absent_count as bigint) as commit_absent_count,
        commit_empty_count,

        -- flags
        is_given_up,
        is_explained
    from explained

)

select * from final
