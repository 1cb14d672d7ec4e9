delete from marts.fct_sales
    where country = 'PE';

    insert into marts.fct_sales
    select * from staging.sales
