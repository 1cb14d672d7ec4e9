{#- Mends the rendering of incremental models without a database, whose catalogue the adapter
    would ask: the branch is then the one that was named. -#}
{% macro is_incremental() -%}
    {%- if rendered_branch() is not none -%}
        {{ return(
            rendered_branch() == "increment" and model.config.materialized == "incremental"
        ) }}
    {%- endif -%}
    {{ return(dbt.is_incremental()) }}
{%- endmacro %}
