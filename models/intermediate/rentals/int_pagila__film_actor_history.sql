{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__film_actor"),
    stream="pagila.film_actor",
    key=["actor_id", "film_id"],
    attributes=["updated_at"],
) }}
