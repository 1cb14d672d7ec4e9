{#- One scan: rows are counted by key, and the counts are summed. -#}
{% macro null_and_doubled_rows(model, columns_where, key=[]) -%}

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
            "required columns of " ~ model ~ ": no column has a not_null constraint: give those"
            ~ " that are required `constraints: [{type: not_null}]`, or remove the test"
        ) }}
    {%- endif -%}
{%- endif %}
{%- set promises = [] %}
{%- if key %}
    {%- do promises.append(
        {"place": 0, "promise": "'unique'", "column_name": "'" ~ key | join(", ") ~ "'"}
    ) %}
{%- endif %}
{%- for column in required %}
    {%- do promises.append(
        {"place": loop.index, "promise": "'not_null'", "column_name": "'" ~ column ~ "'"}
    ) %}
{%- endfor %}
{%- set broken %}
    case promises.place
    {%- for promise in promises %}
        when {{ promise.place }} then counted.row_count_{{ promise.place }}
    {%- endfor %}
    end
{%- endset %}

with

by_key as (

    select
        {% for column in key %}
            {{ column }} as key_{{ loop.index }},
        {% endfor %}
        {% for column, condition in required.items() %}
            sum(
                case when {{ column }} is null and {{ condition }} then 1 else 0 end
            ) as row_count_{{ loop.index }},
        {% endfor %}
        count(*) as row_count
    from {{ model }}
    {% if key %}
        group by {{ key | join(", ") }}
    {% endif %}

),

counted as (

    select
        {% if key %}
            sum(case when row_count > 1 then row_count else 0 end) as row_count_0,
            max(
                case
                    when row_count > 1
                        then
                        {% for column in key %}
                            coalesce(cast(key_{{ loop.index }} as varchar(256)), 'null')
                            {{ "|| ', ' ||" if not loop.last }}
                        {% endfor %}
                end
            ) as example_0,
        {% endif %}
        {% for column in required %}
            sum(row_count_{{ loop.index }}) as row_count_{{ loop.index }}
            {{- "," if not loop.last }}
        {% endfor %}
    from by_key

),

promises as (

    {{ value_rows(promises) }}

)

select
    promises.promise,
    promises.column_name,
    {{ broken }} as row_count
    {%- if key %},
    case promises.place when 0 then counted.example_0 end as example
    {%- endif %}
from counted
cross join promises
where
    {{ broken }} > 0

{%- endmacro %}
