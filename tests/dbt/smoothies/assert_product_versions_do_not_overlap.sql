with

versions as (

    select
        product_key,
        product_id,
        is_first_version,
        is_current,
        valid_from_at,
        valid_to_at,
        lag(valid_to_at) over (
            partition by product_id
            order by valid_from_at asc
        ) as earlier_valid_to_at,
        row_number() over (
            partition by product_id
            order by valid_from_at asc
        ) as version_number
    from {{ ref("dim_products") }}

)

select
    product_key,
    valid_from_at,
    valid_to_at,
    earlier_valid_to_at
from versions
where
    valid_to_at <= valid_from_at
    or earlier_valid_to_at > valid_from_at
    -- Only the last may be without an end, only the first is the first.
    or (version_number > 1 and earlier_valid_to_at is null)
    or (version_number = 1 and not is_first_version)
    or (version_number > 1 and is_first_version)
    or (is_current and valid_to_at is not null)
    or (not is_current and valid_to_at is null)
