{#- Mends `dbt source freshness` where the machine's zone is not UTC: in session mode
    Python turns timestamps into the machine's zone, and dbt takes them for UTC. A
    timestamp without a zone comes as it is. And where a source has had no row yet, which is not
    stale: `spark-ingest` makes all tables at its first start. -#}
{% macro spark__collect_freshness(source, loaded_at_field, filter) %}
    {%- call statement("collect_freshness", fetch_result=True, auto_begin=False) -%}
        select
            cast(
                coalesce(max({{ loaded_at_field }}), current_timestamp()) as timestamp_ntz
            ) as max_loaded_at,
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
            coalesce(
                max({{ loaded_at_field }}), {{ current_timestamp() }}
            ) as max_loaded_at,
            {{ current_timestamp() }} as snapshotted_at
        from {{ source }}
        {% if filter -%}
        where {{ filter }}
        {%- endif %}
    {%- endcall -%}
    {{ return(load_result("collect_freshness")) }}
{% endmacro %}
