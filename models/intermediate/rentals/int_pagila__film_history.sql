{{ config(materialized="incremental", partition_by="is_current") }}

{{ change_history(
    ref("stg_pagila__film"),
    stream="pagila.film",
    key=["film_id"],
    left_out=["film_description", "film_words"],
) }}
