{#- Mends `dbt source freshness` where the machine's zone is not UTC: in session mode
    Python turns timestamps into the machine's zone, and dbt takes them for UTC. A
    timestamp without a zone comes as it is. -#}
{% macro spark__collect_freshness(source, loaded_at_field, filter) %}
    {%- call statement("collect_freshness", fetch_result=True, auto_begin=False) -%}
        select
            cast({{ newest_load(source, loaded_at_field) }} as timestamp_ntz)
                as max_loaded_at,
            cast(current_timestamp() as timestamp_ntz) as snapshotted_at
        from {{ source }}
        {% if filter -%}
        where {{ filter }}
        {%- endif %}
    {%- endcall -%}
    {{ return(load_result("collect_freshness")) }}
{% endmacro %}

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

{#- A database that nobody captures yet is not silent: its tables are there for dbt, and empty. -#}
{% macro newest_load(source, loaded_at_field) -%}
    {%- set newest = "max(" ~ loaded_at_field ~ ")" -%}
    {%- for node in graph.sources.values()
        if node.schema == source.schema and node.identifier == source.identifier
        and "captured" in node.config.meta.get("ingest", {}) -%}
        {{ return("coalesce(" ~ newest ~ ", " ~ current_timestamp() ~ ")") }}
    {%- endfor -%}
    {{ return(newest) }}
{%- endmacro %}
