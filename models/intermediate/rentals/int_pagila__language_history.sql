{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__language"),
    stream="pagila.language",
    key=["language_id"],
    attributes=["language_name", "updated_at"],
) }}
