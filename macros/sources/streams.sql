{#- `graph` has sources only at run time: while dbt parses there are none, so dbt-bouncer and the
    lineage see none. The build order is unaffected, since dbt does not build sources. -#}
{% macro ingested_streams() -%}
    {%- set streams = [] -%}
    {%- if execute -%}
        {%- for source in graph.get("sources", {}).values() | sort(attribute="unique_id")
            if source.config.meta.get("ingest") -%}
            {%- do streams.append({
                "source_name": source.source_name,
                "name": source.name,
                "table_name": source.schema ~ "." ~ source.identifier,
                "event_time": source.config.meta.ingest.get("event_time"),
                "has_table": is_in_lake(source),
            }) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(streams) }}
{%- endmacro %}
