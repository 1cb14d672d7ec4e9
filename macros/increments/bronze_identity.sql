{#- By which UUID a table is known however often its name was given again, and since when it
    stands there as it does: ingest writes both into its log when it makes or first opens a
    table, or finds it set back. None: ingest has not told, or tells nobody. -#}
{% macro bronze_identity(stream) -%}
    {%- set memory = invocation_memory() -%}
    {%- if "bronze identities" not in memory -%}
        {%- set identities = {} -%}
        {%- set log = bronze_table("ingest.ingest_commits") -%}
        {%- if has_column(log, "table_uuid") -%}
            {%- set rows = lake_rows(
                "select table_name, table_uuid, "
                ~ epoch_micros("cast(committed_at as timestamp)") ~ " as since"
                ~ " from (select table_name, table_uuid, committed_at,"
                ~ " row_number() over (partition by table_name"
                ~ " order by committed_at desc, table_uuid desc) as recency"
                ~ " from " ~ log ~ " where kind = 'table') as tables where recency = 1",
                [],
            ) -%}
            {%- for row in rows -%}
                {%- do identities.update({
                    row[0]: {"table_uuid": row[1], "table_since": row[2] | int}
                }) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do memory.setdefault("bronze identities", identities) -%}
    {%- endif -%}
    {%- set table = bronze_table(stream) -%}
    {{ return(memory["bronze identities"].get(
        table.schema ~ "." ~ table.identifier, {"table_uuid": none, "table_since": 0}
    )) }}
{%- endmacro %}
