{#- Fixes the comment of a relation, which has the description only: adds the code checksum,
    because Redshift has no table properties. -#}
{% macro redshift__persist_docs(relation, model, for_relation, for_columns) -%}
    {{ dbt.redshift__persist_docs(relation, model, false, for_columns) }}
    {%- if for_relation -%}
        {%- set description = model.description if config.persist_relation_docs() else "" -%}
        {%- set comment = comment_with_code(description) -%}
        {%- if comment -%}
            {%- do run_query(alter_relation_comment(relation, comment)) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
