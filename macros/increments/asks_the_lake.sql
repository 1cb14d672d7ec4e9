{% macro asks_the_lake() -%}
    {{ return(
        execute and target.name != "lint" and model.resource_type != "unit_test"
    ) }}
{%- endmacro %}
