{#- Every window starts at a multiple of the slide and lasts as long as the settings say.
    Fails when the settings changed and the windows were not built again. -#}
{% test on_grid(model) %}

{%- set window = sales_window() %}

with

windows as (

    select
        {{ epoch_seconds("window_start_at") }} as start_second,
        {{ epoch_seconds("window_end_at") }} as end_second
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
