with

-- A product's last line is the one that counts most lines.
ends as (

    select
        product_id,
        max(running_purchase_count) as purchase_count,
        count(*) as line_count,
        count(distinct running_purchase_count) as distinct_count
    from {{ ref("fct_product_running_totals") }}
    group by product_id

),

last_lines as (

    select
        ends.product_id,
        ends.purchase_count,
        ends.line_count,
        ends.distinct_count,
        running.running_quantity as quantity,
        running.running_sales_amount as sales_amount
    from ends
    inner join {{ ref("fct_product_running_totals") }} as running
        on
            ends.product_id = running.product_id
            and ends.purchase_count = running.running_purchase_count

),

totals as (

    select * from {{ ref("rpt_product_sales") }}

)

-- Lines that are counted 1, 2, 3… without a gap end with their own number.
select
    totals.product_id as expected_product_id,
    last_lines.product_id,
    totals.purchase_count as expected_count,
    last_lines.purchase_count,
    last_lines.line_count,
    last_lines.distinct_count
from totals
full outer join last_lines
    on totals.product_id = last_lines.product_id
where
    totals.product_id is null
    or last_lines.product_id is null
    or totals.purchase_count <> last_lines.purchase_count
    or totals.purchase_count <> last_lines.line_count
    or totals.purchase_count <> last_lines.distinct_count
    or totals.quantity <> last_lines.quantity
    or totals.sales_amount <> last_lines.sales_amount
