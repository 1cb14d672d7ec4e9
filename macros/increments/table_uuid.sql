{#- By which a table is known however often its name was given anew: ingest writes it into
    its log when it makes or first opens one. None: ingest has not told, or tells nobody. -#}
{% macro table_uuid(stream) -%}
    {%- set memory = invocation_memory() -%}
    {%- if "table uuids" not in memory -%}
        {%- set uuids = {} -%}
        {%- set log = bronze_table("ingest.ingest_commits") -%}
        {%- if has_column(log, "table_uuid") -%}
            {%- set rows = lake_rows(
                "select table_name, table_uuid from (select table_name, table_uuid,"
                ~ " row_number() over (partition by table_name"
                ~ " order by committed_at desc, table_uuid desc) as recency"
                ~ " from " ~ log ~ " where kind = 'table') as tables where recency = 1",
                [],
            ) -%}
            {%- for row in rows -%}
                {%- do uuids.update({row[0]: row[1]}) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do memory.setdefault("table uuids", uuids) -%}
    {%- endif -%}
    {%- set table = bronze_table(stream) -%}
    {{ return(memory["table uuids"].get(table.schema ~ "." ~ table.identifier)) }}
{%- endmacro %}
