with

sales as (

    select * from {{ ref("int_tickit__sale_current") }}

),

final as (

    select
        -- keys
        buyer_id as user_id,

        -- times
        cast(min(sold_at) as date) as first_purchase_date
    from sales
    where buyer_id is not null
    group by buyer_id

)

select * from final
