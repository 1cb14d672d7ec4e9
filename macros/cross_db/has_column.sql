{#- Whether a bronze table exists and has a column. -#}
{% macro has_column(table, column) -%}
    {{ return(
        rendered_branch() is not none or adapter.dispatch("has_column")(table, column)
    ) }}
{%- endmacro %}

{% macro spark__has_column(table, column) -%}
    {%- set found = load_relation(table) -%}
    {{ return(
        found is not none
        and column in (adapter.get_columns_in_relation(found) | map(attribute="name") | list)
    ) }}
{%- endmacro %}

{#- The adapter does not list external tables. -#}
{% macro redshift__has_column(table, column) -%}
    {%- set rows = lake_rows(
        "select columnname from svv_external_columns where schemaname = '"
        ~ table.schema ~ "' and tablename = '" ~ table.identifier
        ~ "' and columnname = '" ~ column ~ "'",
        [[column]],
    ) -%}
    {{ return(rows | length > 0) }}
{%- endmacro %}
