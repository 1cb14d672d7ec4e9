{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__film_category"),
    stream="pagila.film_category",
    key=["film_id", "category_id"],
    attributes=["updated_at"],
) }}
