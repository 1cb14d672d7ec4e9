{#- Mends the creation of views, where the adapter leaves `tblproperties` out. -#}
{% macro spark__create_view_as(relation, sql) -%}
    create or replace view {{ relation }}
    {%- if config.persist_column_docs() %}
    ({{ get_persist_docs_column_list(model.columns, get_columns_in_query(sql)) }})
    {%- endif %}
    {{ comment_clause() }}
    {{ tblproperties_clause() }}
    {%- if config.get("contract").enforced -%}
        {{ get_assert_columns_equivalent(sql) }}
    {%- endif %}
    as
    {{ sql }}
{%- endmacro %}
