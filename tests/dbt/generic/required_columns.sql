{#- No required column is null: a row for each one that is, with how often. Required are the
    columns with a not_null constraint, and others where a condition holds. One scan for all. -#}
{% test required_columns(model, columns_where={}) %}

{%- set required = {} -%}
{%- if execute -%}
    {#- An ephemeral model is a CTE of the test. -#}
    {%- for node in (graph.nodes.values() | list) + (graph.sources.values() | list)
        if model | string in [node.relation_name, "__dbt__cte__" ~ node.name] -%}
        {%- for column in node.columns.values()
            if column.constraints | selectattr("type", "equalto", "not_null") | list -%}
            {%- do required.update({column.name: "true"}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for condition, columns in columns_where.items() -%}
        {%- for column in columns -%}
            {%- do required.update({column: condition}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not required -%}
        {{ exceptions.raise_compiler_error(
            "required_columns of " ~ model ~ ": no column has a not_null constraint: give those"
            ~ " that are required `constraints: [{type: not_null}]`, or remove the test"
        ) }}
    {%- endif -%}
{%- endif %}
{%- set names = [] %}
{%- for column in required %}
    {%- do names.append({"column_name": "'" ~ column ~ "'"}) %}
{%- endfor %}

select
    names.column_name,
    case names.column_name
    {%- for column in required %}
        when '{{ column }}' then nulls.{{ column }}
    {%- endfor %}
    end as null_count
from (
    select
    {%- for column, condition in required.items() %}
        sum(case when {{ column }} is null and {{ condition }} then 1 else 0 end) as {{ column }}
        {%- if not loop.last %},{% endif %}
    {%- endfor %}
    from {{ model }}
) as nulls
cross join (
    {{ value_rows(names) }}
) as names
where
    case names.column_name
    {%- for column in required %}
        when '{{ column }}' then nulls.{{ column }}
    {%- endfor %}
    end > 0

{% endtest %}
