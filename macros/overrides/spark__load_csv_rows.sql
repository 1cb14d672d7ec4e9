{#- Fixes seeds: the adapter does not escape values, so that an apostrophe is a syntax error and a
    missing value becomes the text 'None'. Here every value is an escaped literal with any
    connection method. -#}
{% macro spark__load_csv_rows(model, agate_table) %}
    {%- set column_types = model["config"].get("column_types", {}) -%}
    {%- set types = [] -%}
    {%- for column in agate_table.column_names -%}
        {%- do types.append(
            column_types.get(column, adapter.convert_type(agate_table, loop.index0))
        ) -%}
    {%- endfor -%}
    {%- set statements = [] -%}
    {%- for chunk in agate_table.rows | batch(get_batch_size()) -%}
        {%- set statement -%}
            insert into {{ this.render() }} values
            {% for row in chunk -%}
                (
                {%- for value in row -%}
                    cast({{ text_literal(value) }} as {{ types[loop.index0] }})
                    {{- ", " if not loop.last }}
                {%- endfor -%}
                ){{ ",\n" if not loop.last }}
            {%- endfor -%}
        {%- endset -%}
        {%- do adapter.add_query(statement, abridge_sql_log=True) -%}
        {%- do statements.append(statement) -%}
    {%- endfor -%}
    {#- The seed's compiled code; a seed without rows has none. -#}
    {{ return(statements[0] if statements else "") }}
{% endmacro %}
