{#- Fixes dbt-spark 1.10.3 with dbt 1.10: it calls a macro of later adapters. -#}
{% macro validate_doc_columns(relation, column_dict, existing_column_names) -%}
    {%- if dbt.validate_doc_columns is defined -%}
        {{ return(
            dbt.validate_doc_columns(relation, column_dict, existing_column_names)
        ) }}
    {%- endif -%}
    {%- set described = {} -%}
    {%- for name in column_dict if name | lower in existing_column_names | map("lower") -%}
        {%- do described.update({name: column_dict[name]}) -%}
    {%- endfor -%}
    {{ return(described) }}
{%- endmacro %}
