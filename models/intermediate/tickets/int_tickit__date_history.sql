{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__date"),
    stream="tickit.date",
    key=["date_id"],
    attributes=[
        "day_code",
        "month_code",
        "quarter_code",
        "week_number",
        "calendar_year",
        "is_holiday",
        "calendar_date",
    ],
) }}
