{% macro before_affected_days(increment, column) -%}
    {%- if increment.is_full_refresh or increment.onwards_from is none -%}
        1 = 0
    {%- else -%}
        ({{ column }} is null or {{ column }} < {{ midnight(increment.onwards_from) }})
    {%- endif -%}
{%- endmacro %}
