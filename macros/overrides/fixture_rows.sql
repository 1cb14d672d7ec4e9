{#- Fixes the input rows of unit tests, each of which would be a separate task on Spark: see
    `value_rows`. -#}
{% macro get_fixture_sql(rows, column_name_to_data_types) -%}
    {%- set types = {} -%}
    {#- If the model does not exist, its deferred relation may. -#}
    {%- set is_deferred = defer_relation and not load_relation(this) -%}
    {%- for column in adapter.get_columns_in_relation(
        defer_relation if is_deferred else this
    ) -%}
        {%- do types.update({column.name | lower: column.data_type}) -%}
    {%- endfor -%}
    {%- if not types -%}
        {{ raise_error(
            "a unit test reads the columns of " ~ this ~ ", not built yet",
            "dbt build --select +" ~ this.identifier,
        ) }}
    {%- endif -%}
    {%- if not rows -%}
        {{ return(dbt.get_fixture_sql(rows, column_name_to_data_types)) }}
    {%- endif -%}
    {%- set literals = [] -%}
    {%- for row in rows -%}
        {%- set values = {} -%}
        {%- for column, type in types.items() -%}
            {%- do values.update({adapter.quote(column): safe_cast("null", type) | trim}) -%}
        {%- endfor -%}
        {%- for column, value in format_row(row, types).items() -%}
            {%- do values.update({adapter.quote(column): value | trim}) -%}
        {%- endfor -%}
        {%- do literals.append(values) -%}
    {%- endfor -%}
    {{ value_rows(literals) }}
{%- endmacro %}

{#- Fixes the expected rows of unit tests in the same way. dbt 1.10 does not pass quoted names,
    and selects no rows in its own way. -#}
{% macro get_expected_sql(rows, column_name_to_data_types, column_name_to_quoted=none) -%}
    {%- if not rows and column_name_to_quoted is none -%}
        {{ return(dbt.get_expected_sql(rows, column_name_to_data_types)) }}
    {%- elif not rows -%}
        {{ return(dbt.get_expected_sql(
            rows, column_name_to_data_types, column_name_to_quoted
        )) }}
    {%- endif -%}
    {%- set quoted = column_name_to_quoted or {} -%}
    {%- set expected = [] -%}
    {%- for row in rows -%}
        {%- set values = {} -%}
        {%- for column, value in format_row(row, column_name_to_data_types).items() -%}
            {%- do values.update({quoted.get(column, column): value | trim}) -%}
        {%- endfor -%}
        {%- do expected.append(values) -%}
    {%- endfor -%}
    {{ value_rows(expected) }}
{%- endmacro %}
