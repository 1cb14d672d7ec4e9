{% macro asks_the_lake() -%}
    {{ return(
        execute and target.name != "lint" and model.resource_type != "unit_test"
    ) }}
{%- endmacro %}

{#- `dbt compile` and `dbt docs generate` render the same models and write no row: what
    would stop a build does not stop them. -#}
{% macro writes_rows() -%}
    {{ return(flags.WHICH not in ["compile", "generate", "list", "show", "test"]) }}
{%- endmacro %}
