{#- Fixes `dbt source freshness` on machines whose time zone is not UTC: in session mode Python
    converts timestamps to the local zone, and dbt takes them for UTC. A timestamp without time
    zone is not converted. -#}
{% macro spark__collect_freshness(source, loaded_at_field, filter) %}
    {%- call statement("collect_freshness", fetch_result=True, auto_begin=False) -%}
        select
            cast({{ newest_load(source, loaded_at_field) }} as timestamp_ntz) as max_loaded_at,
            cast(current_timestamp() as timestamp_ntz) as snapshotted_at
        from {{ source }}
        {% if filter -%}
        where {{ filter }}
        {%- endif %}
    {%- endcall -%}
    {{ return(load_result("collect_freshness")) }}
{% endmacro %}

{#- Fixes `dbt source freshness` for streams without records. -#}
{% macro redshift__collect_freshness(source, loaded_at_field, filter) %}
    {%- call statement("collect_freshness", fetch_result=True, auto_begin=False) -%}
        select
            {{ newest_load(source, loaded_at_field) }} as max_loaded_at,
            {{ current_timestamp() }} as snapshotted_at
        from {{ source }}
        {% if filter -%}
        where {{ filter }}
        {%- endif %}
    {%- endcall -%}
    {{ return(load_result("collect_freshness")) }}
{% endmacro %}

{#- Fixes the freshness of a stream without records, which dbt takes for infinitely old: it is as
    old as its table, which `spark-ingest` creates at its first start. -#}
{% macro newest_load(relation, loaded_at_field) -%}
    {%- set newest = "max(" ~ loaded_at_field ~ ")" -%}
    {%- for source in graph.sources.values()
        if source.schema == relation.schema and source.identifier == relation.identifier
        and is_of_ingest(source) -%}
        {%- set log = bronze_table("ingest.ingest_commits") -%}
        {%- if has_column(log, "kind") -%}
            {{ return(
                "coalesce(" ~ newest ~ ", (select max(committed_at) from " ~ log
                ~ " where kind = 'table' and table_name = '"
                ~ source.schema ~ "." ~ source.identifier ~ "'))"
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(newest) }}
{%- endmacro %}
