{#- On Redshift: nothing joins it row by row; rewritten by day. -#}
{{ config(
    materialized="incremental",
    partition_by="days(moved_at)",
    dist="even",
    sort="moved_at",
) }}

{% set increment = begin_increment(time_column="moved_at") %}
{% do touch_new_rows(
    increment,
    rows=ref("int_smoothies__inventories_restocked"),
    stream="smoothies.inventories",
    time_column="moved_at",
) %}

with

movements as (

    select
        record_key,
        product_id,
        existing_level,
        stock_quantity,
        new_level,
        moved_at,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from {{ ref("int_smoothies__inventories_restocked") }}
    where {{ new_rows(increment, "smoothies.inventories") }}
    {% if not increment.is_everything %}
        union all
        -- Without those of a run that died before it noted how far it had read: they are
        -- new once more.
        select
            record_key,
            product_id,
            existing_level,
            stock_quantity,
            new_level,
            moved_at,
            _kafka_topic_id,
            _kafka_partition,
            _kafka_offset,
            _kafka_timestamp,
            _ingested_at,
            _commit_id
        from {{ this }}
        where
            {{ in_touched_days(increment, "moved_at") }}
            and _commit_id <= {{ increment.reads["smoothies.inventories"].after }}
    {% endif %}

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
