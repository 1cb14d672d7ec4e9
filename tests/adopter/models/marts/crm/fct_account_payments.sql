{{ config(materialized="incremental", unique_key="payment_id") }}

with

payments as (

    select * from {{ ref("crm_payments") }}
    {% if is_incremental() %}
    where loaded_at > (select max(loaded_at) from {{ this }})
    {% endif %}

),

accounts as (

    select * from {{ ref("accounts_snapshot") }}
    where dbt_valid_to is null

)

select
    payments.payment_id,
    payments.account_id,
    cast(countries.country_name as varchar(64)) as country_name,
    payments.amount_cents,
    payments.loaded_at
from payments
left join accounts
    on payments.account_id = accounts.account_id
left join {{ ref("shop_tools", "countries") }} as countries
    on accounts.country_code = countries.country_code
