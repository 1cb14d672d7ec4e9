{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__film"),
    stream="pagila.film",
    key=["film_id"],
    attributes=[
        "language_id",
        "original_language_id",
        "film_title",
        "film_description",
        "film_rating",
        "special_features",
        "film_words",
        "release_year",
        "rental_days",
        "rental_amount",
        "film_minutes",
        "replacement_amount",
        "updated_at",
    ],
) }}
