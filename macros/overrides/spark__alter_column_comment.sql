{#- Fixes column descriptions: the adapter runs one statement, and so one Iceberg commit, per
    column. Spark 4 supports all columns in one. -#}
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
