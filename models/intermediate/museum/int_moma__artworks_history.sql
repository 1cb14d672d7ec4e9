{{ config(materialized="incremental", partition_by="is_current") }}

{{ change_history(
    ref("stg_moma__artworks"), stream="moma.artworks", key=["artwork_id"]
) }}
