{#- Run by hand or on a schedule: dbt run-operation export_rows. -#}
{% macro export_rows(model, to, partition_by, iam_role="default", dry_run=false) -%}
    {%- if execute -%}
        {%- set nodes = graph.nodes.values() | selectattr("name", "equalto", model)
            | selectattr("resource_type", "equalto", "model") | list -%}
        {%- if not nodes or not nodes[0].config.contract.enforced -%}
            {{ exceptions.raise_compiler_error(
                "no model with a contract is named " ~ model ~ ": export one of the marts"
            ) }}
        {%- endif -%}
        {%- set types = {} -%}
        {%- for column in nodes[0].columns.values() -%}
            {%- do types.update({column.name: column.data_type}) -%}
        {%- endfor -%}
        {%- set partition_by = [partition_by] if partition_by is string else partition_by -%}
        {%- for column in partition_by if column not in types -%}
            {{ exceptions.raise_compiler_error(
                model ~ " has no column " ~ column ~ " to partition by: its columns are "
                ~ types.keys() | join(", ")
            ) }}
        {%- endfor -%}
        {%- if not to or "'" in to or "\\" in to -%}
            {{ exceptions.raise_compiler_error(
                "`to` is " ~ (to | tojson) ~ ": it must name a folder, without ' and \\"
            ) }}
        {%- endif -%}
        {%- set relation = api.Relation.create(
            database=nodes[0].database, schema=nodes[0].schema, identifier=nodes[0].alias
        ) -%}
        {%- for statement in export_statements(relation, types, to, partition_by, iam_role) -%}
            {%- if dry_run -%}
                {{ print(statement ~ ";") }}
            {%- else -%}
                {%- do run_query(statement) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if not dry_run -%}
            {{ print("Exported " ~ model ~ " to " ~ to ~ ", by " ~ partition_by | join(", ")) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- The statements of `export_rows`, a list. They replace the content of the folder. Rows with a
    null partition value are included. -#}
{% macro export_statements(relation, types, to, partition_by, iam_role) -%}
    {{ return(adapter.dispatch("export_statements")(
        relation, types, to, partition_by, iam_role
    )) }}
{%- endmacro %}

{#- Uses a table in Spark's built-in session catalog: an Iceberg table is not a folder of plain
    files. -#}
{% macro spark__export_statements(relation, types, to, partition_by, iam_role) -%}
    {%- set name = "spark_catalog.default.exported_" ~ relation.identifier -%}
    {%- set columns = types.keys() | reject("in", partition_by) | list -%}
    {%- set described = [] -%}
    {%- for column in columns + partition_by -%}
        {%- do described.append(column ~ " " ~ types[column]) -%}
    {%- endfor -%}
    {{ return([
        "drop table if exists " ~ name,
        "create table " ~ name ~ " (" ~ described | join(", ") ~ ")\nusing parquet\n"
        ~ "partitioned by (" ~ partition_by | join(", ") ~ ")\nlocation '" ~ to ~ "'",
        "insert overwrite table " ~ name ~ "\nselect "
        ~ (columns + partition_by) | join(", ") ~ "\nfrom " ~ relation,
        "drop table " ~ name,
    ]) }}
{%- endmacro %}

{% macro redshift__export_statements(relation, types, to, partition_by, iam_role) -%}
    {{ return([
        "unload ('select " ~ types.keys() | join(", ") ~ " from " ~ relation ~ "')\nto '"
        ~ to.rstrip("/") ~ "/'\niam_role "
        ~ (iam_role if iam_role == "default" else "'" ~ iam_role ~ "'")
        ~ "\nformat as parquet\npartition by (" ~ partition_by | join(", ") ~ ")\ncleanpath"
    ]) }}
{%- endmacro %}
