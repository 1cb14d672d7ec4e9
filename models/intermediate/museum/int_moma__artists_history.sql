{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_moma__artists"),
    stream="moma.artists",
    key=["artist_id"],
    attributes=["artist_name", "nationality", "gender", "birth_year", "death_year"],
) }}
