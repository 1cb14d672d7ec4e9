{{ config(materialized="incremental") }}

select
    account_id,
    country_code,
    _synced_at
from {{ source("salesforce", "accounts") }}
{% if is_incremental() %}
where _synced_at > (select max(_synced_at) from {{ this }})
{% endif %}
