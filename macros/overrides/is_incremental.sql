{#- Fixes the rendering of incremental models without a database, whose catalog the adapter would
    query: the branch is then that of `rendered_branch`. -#}
{% macro is_incremental() -%}
    {%- if rendered_branch() is not none -%}
        {{ return(
            rendered_branch() == "increment" and model.config.materialized == "incremental"
        ) }}
    {%- endif -%}
    {{ return(dbt.is_incremental()) }}
{%- endmacro %}
