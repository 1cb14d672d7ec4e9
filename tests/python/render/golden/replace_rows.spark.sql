insert into marts.fct_sales replace where country = 'PE'
    select * from staging.sales
