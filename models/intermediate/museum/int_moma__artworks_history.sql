{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_moma__artworks"),
    stream="moma.artworks",
    key=["artwork_id"],
    attributes=[
        "artist_id",
        "artwork_title",
        "date_text",
        "medium",
        "dimensions",
        "credit",
        "department",
        "classification",
        "object_number",
        "diameter_cm",
        "circumference_cm",
        "height_cm",
        "length_cm",
        "width_cm",
        "depth_cm",
        "weight_kg",
        "duration_seconds",
        "is_catalogued",
        "acquisition_date",
        "updated_at",
    ],
) }}
