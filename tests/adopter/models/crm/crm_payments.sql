{{ config(materialized="incremental", schema="crm", unique_key="payment_id") }}

select
    payment_id,
    account_id,
    {{ shop_tools.in_cents("amount") }} as amount_cents,
    loaded_at
from {{ source("finance", "payments") }}
{% if is_incremental() %}
where loaded_at > (select max(loaded_at) from {{ this }})
{% endif %}
