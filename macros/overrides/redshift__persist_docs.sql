{#- Adds the checksum of the code that makes a relation to its comment. Mends the comment of a
    relation, with which nothing can be kept but the description: here also which code made it.
    Redshift has no properties of tables. -#}
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
