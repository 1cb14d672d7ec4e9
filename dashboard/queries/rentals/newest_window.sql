-- The newest window of rental sales
select max(window_start_at) as newest_at
from marts.fct_regional_sales_windows
