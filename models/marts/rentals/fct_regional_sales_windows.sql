{#- On Redshift: few regions would fill few slices; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(window_start_at)",
    dist="even",
    sort="window_start_at",
) }}

{{ sales_by_window(ref("fct_rental_sales"), by="sales_region") }}
