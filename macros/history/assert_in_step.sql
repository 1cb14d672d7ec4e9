{#- A model that has read all of a parent that the increment follows need not be followed
    itself. -#}
{% macro assert_in_step(increment, relation, other) -%}
    {#- A unit test has no graph. -#}
    {%- if queries_lake() -%}
        {%- do increment.follows.append(node_of(relation).unique_id) -%}
    {%- endif -%}
    {%- if queries_lake() and writes_rows() -%}
        {%- set name = other.schema ~ "." ~ other.identifier -%}
        {%- if recorded_read_point(relation, name) != increment.reads[name].to -%}
            {{ raise_error(
                relation.schema ~ "." ~ relation.identifier ~ " has not read all of " ~ name,
                "dbt build --select " ~ relation.identifier ~ "+",
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
