{#- On Redshift: never joined row by row; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(moved_at)",
    dist="even",
    sort="moved_at",
) }}

{% set increment = begin_increment(time_column="moved_at") %}

with

movements as (

    {{ new_and_existing_rows(
        increment,
        rows=ref("int_smoothies__inventories_restocked"),
        stream="smoothies.inventories",
    ) }}

),

final as (

    select
        -- keys
        record_key,
        product_id,

        -- numbers
        existing_level,
        stock_quantity,
        new_level,

        -- times
        moved_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from movements

)

select * from final
