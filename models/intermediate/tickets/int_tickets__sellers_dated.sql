with

sales as (

    select * from {{ ref("int_tickit__sale_current") }}

),

final as (

    select
        -- keys
        seller_id as user_id,

        -- times
        cast(min(sold_at) as date) as first_sale_date
    from sales
    where seller_id is not null
    group by seller_id

)

select * from final
