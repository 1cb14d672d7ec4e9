{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_pagila__address"),
    stream="pagila.address",
    key=["address_id"],
    attributes=[
        "city_id",
        "street_address",
        "street_address_2",
        "address_district",
        "postal_code",
        "phone",
        "updated_at",
    ],
) }}
