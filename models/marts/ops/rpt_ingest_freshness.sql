{#- On Redshift: grows with every hour; asked for by time. -#}
{{ config(dist="even", sort="hour_start_at") }}

with

records as (

    select * from {{ ref("int_ops__records_timed") }}

),

final as (

    select
        -- keys
        bronze_table,
        hour_start_at,

        -- numbers
        cast(max(event_to_kafka_seconds) as decimal(18, 3))
            as event_to_kafka_max_seconds,
        {{ average_seconds("event_to_kafka_seconds") }}
            as event_to_kafka_average_seconds,
        cast(max(kafka_to_ingest_seconds) as decimal(18, 3))
            as kafka_to_ingest_max_seconds,
        {{ average_seconds("kafka_to_ingest_seconds") }}
            as kafka_to_ingest_average_seconds,
        cast(max(event_to_ingest_seconds) as decimal(18, 3))
            as event_to_ingest_max_seconds,
        {{ average_seconds("event_to_ingest_seconds") }}
            as event_to_ingest_average_seconds,
        count(*) as bronze_row_count
    from records
    group by bronze_table, hour_start_at

)

select * from final
