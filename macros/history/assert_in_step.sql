{% macro assert_in_step(increment, relation, other) -%}
    {%- if asks_the_lake() and writes_rows() -%}
        {%- set name = other.schema ~ "." ~ other.identifier -%}
        {%- if recorded_read_point(relation, name) != increment.reads[name].to -%}
            {{ stop(
                relation.schema ~ "." ~ relation.identifier ~ " has not read all of " ~ name,
                "dbt build --select " ~ relation.identifier ~ "+",
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
