{#- Mends the writing of column descriptions: the adapter sends a statement, and so commits
    the Iceberg table, once for each column. Spark 4 takes them all in one. -#}
{% macro spark__alter_column_comment(relation, column_dict) %}
    {%- set comments = [] -%}
    {%- for column in column_dict.values() -%}
        {%- if column["description"] -%}
            {%- do comments.append(
                column["name"] ~ " comment " ~ text_literal(column["description"])
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if comments -%}
        {%- do run_query(
            "alter table " ~ relation ~ " alter column " ~ comments | join(", ")
        ) -%}
    {%- endif -%}
{% endmacro %}
