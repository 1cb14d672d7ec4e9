{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__category"),
    stream="pagila.category",
    key=["category_id"],
    attributes=["category_name", "updated_at"],
) }}
