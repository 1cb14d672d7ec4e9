{% macro value_rows(rows) -%}
    {{ return(adapter.dispatch("value_rows")(rows)) }}
{%- endmacro %}

{#- A `select` per row would be one task per row, for each reference; `values` is evaluated while
    planning. -#}
{% macro spark__value_rows(rows) -%}
    select * from values
    {%- for row in rows %}
        ({{ row.values() | join(", ") }}){{ "," if not loop.last }}
    {%- endfor %}
    as literals ({{ (rows | first or {}) | join(", ") }})
{%- endmacro %}

{% macro default__value_rows(rows) -%}
    {%- for row in rows %}
    select
        {%- for column, value in row.items() %}
        {{ value }} as {{ column }}{{ "," if not loop.last }}
        {%- endfor %}
    {{ "union all" if not loop.last }}
    {%- endfor %}
{%- endmacro %}
