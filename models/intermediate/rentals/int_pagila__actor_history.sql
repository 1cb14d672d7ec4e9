{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__actor"),
    stream="pagila.actor",
    key=["actor_id"],
    attributes=["first_name", "last_name", "updated_at"],
) }}
