{{ config(materialized="incremental", partition_by="is_current") }}

{{ change_history(
    ref("stg_pagila__address"), stream="pagila.address", key=["address_id"]
) }}
