-- Sales of each country
-- All sales since the first, each once.
select
    country,
    sales_amount,
    order_count,
    sales_amount / order_count as average_amount
from marts.rpt_country_sales
order by sales_amount desc, country asc
