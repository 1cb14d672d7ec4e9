{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__category"),
    stream="tickit.category",
    key=["category_id"],
    attributes=["category_group", "category_name", "category_description"],
) }}
