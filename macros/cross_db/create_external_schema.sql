{#- Run once per database: dbt run-operation create_external_schema. -#}
{% macro create_external_schema(
    schema="bronze", database=none, iam_role="default", region=none, dry_run=false
) -%}
    {%- if execute -%}
        {{ adapter.dispatch("create_external_schema")(
            schema, database or schema, iam_role, region, dry_run
        ) }}
    {%- endif -%}
{%- endmacro %}

{% macro default__create_external_schema(schema, database, iam_role, region, dry_run) -%}
    {{ exceptions.raise_compiler_error(
        "only Redshift has external schemas, and " ~ target.name ~ " is a target of "
        ~ target.type ~ ": add `--target redshift`"
    ) }}
{%- endmacro %}

{#- Reads the account's Glue Data Catalog, which Spark writes. An existing schema remains: its
    database is compared, since `if not exists` does not. -#}
{% macro redshift__create_external_schema(schema, database, iam_role, region, dry_run) -%}
    {%- for name, value in [("schema", schema), ("database", database)]
        if not modules.re.match("^[a-z_][a-z0-9_]*$", value | string) -%}
        {{ exceptions.raise_compiler_error(
            name ~ " is " ~ (value | tojson)
            ~ ": it must be a name of lowercase letters, digits and underscores"
        ) }}
    {%- endfor -%}
    {%- if not modules.re.match(
        "^(default|arn:aws[a-z-]*:iam::[0-9]{12}:role/[^',\\s]+(,arn:aws[^',\\s]+)*)$",
        iam_role | string
    ) -%}
        {{ exceptions.raise_compiler_error(
            "iam_role is " ~ (iam_role | tojson) ~ ": it must be `default` or the ARN of a "
            ~ "role, like arn:aws:iam::123456789012:role/spectrum"
        ) }}
    {%- endif -%}
    {%- if region is not none
        and not modules.re.match("^[a-z]{2}(-[a-z]+)+-[0-9]$", region | string) -%}
        {{ exceptions.raise_compiler_error(
            "region is " ~ (region | tojson) ~ ": it must be one like eu-central-1"
        ) }}
    {%- endif -%}
    {%- set statement -%}
        create external schema if not exists {{ schema }}
        from data catalog
        database '{{ database }}'
        {% if region %}region '{{ region }}'
        {% endif -%}
        iam_role {{ iam_role if iam_role == "default" else "'" ~ iam_role ~ "'" }}
    {%- endset -%}
    {%- set lines = [] -%}
    {%- for line in statement.splitlines() -%}
        {%- do lines.append(line | trim) -%}
    {%- endfor -%}
    {%- set statement = lines | join("\n") -%}
    {%- if dry_run -%}
        {{ print(statement ~ ";") }}
    {%- else -%}
        {%- do run_query(statement) -%}
        {%- set reads = run_query(
            "select databasename from svv_external_schemas where schemaname = '"
            ~ schema ~ "'"
        ).rows -%}
        {%- if not reads or reads[0][0] != database -%}
            {{ exceptions.raise_compiler_error(
                "schema " ~ schema ~ " already exists and "
                ~ ("reads the database " ~ reads[0][0] if reads else "is not an external one")
                ~ ", not " ~ database ~ ": drop it, or name another with `schema`"
            ) }}
        {%- endif -%}
        {%- set found = run_query(
            "select count(*) as table_count from svv_external_tables where schemaname = '"
            ~ schema ~ "'"
        ).rows[0][0] -%}
        {{ print(
            "External schema " ~ schema ~ " reads the database " ~ database ~ ": "
            ~ found ~ " tables"
        ) }}
    {%- endif -%}
{%- endmacro %}
