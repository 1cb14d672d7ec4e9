{% macro value_rows(rows) -%}
    {{ return(adapter.dispatch("value_rows")(rows)) }}
{%- endmacro %}

{#- A `select` for each row would be a task for each, in every place that reads them; these
    are known before anything runs. -#}
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
