{#- Every window starts at a multiple of the slide and has the configured length. Fails if the
    settings changed and the windows were not rebuilt. -#}
{% test on_grid(model, start, end) %}

{%- set window = sales_window() %}

with

windows as (

    select
        {{ epoch_seconds(start) }} as start_second,
        {{ epoch_seconds(end) }} as end_second
    from {{ model }}

)

select
    start_second,
    end_second
from windows
where
    mod(start_second, {{ window.slide_minutes * 60 }}) <> 0
    or end_second - start_second <> {{ window.length_minutes * 60 }}

{% endtest %}
