{#- One scan and one aggregation. Without a key only rows with nulls are counted, so that Iceberg
    skips the files of a table that have none. -#}
{% macro null_and_doubled_rows(model, columns_where, key=[]) -%}

{%- set required = {} -%}
{%- if execute -%}
    {#- An ephemeral model is a CTE of the test. -#}
    {%- for node in (graph.nodes.values() | list) + (graph.sources.values() | list)
        if model | string in [node.relation_name, "__dbt__cte__" ~ node.name] -%}
        {%- for column in node.columns.values()
            if column.constraints | selectattr("type", "equalto", "not_null") | list -%}
            {%- do required.update({column.name: column.name ~ " is null"}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for condition, columns in columns_where.items() -%}
        {%- for column in columns -%}
            {%- do required.update({column: "(" ~ column ~ " is null and (" ~ condition ~ "))"}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not required -%}
        {{ exceptions.raise_compiler_error(
            "required columns of " ~ model ~ ": no column has a not_null constraint: give those"
            ~ " that are required `constraints: [{type: not_null}]`, or remove the test"
        ) }}
    {%- endif -%}
{%- endif %}
{%- set key_columns = key | join(", ") %}

with

counted as (

    select
        {% if key %}
            {{ key_columns }},
        {% endif %}
        {% for column, is_null in required.items() %}
            sum(case when {{ is_null }} then 1 else 0 end) as {{ column }}__null_count,
        {% endfor %}
        count(*) as _row_count
    from {{ model }}
    {% if key %}
        group by {{ key_columns }}
    {% else %}
        where {{ required.values() | join(" or ") }}
    {% endif %}

)

select *
from counted
where
    {% for column in required %}
        {{ column }}__null_count > 0
        {{ "or" if not loop.last }}
    {% endfor %}
    {% if key %}
        or _row_count > 1
    {% endif %}

{%- endmacro %}
