{#- Mends `dbt source freshness` where the machine's zone is not UTC: in session mode
    Python turns timestamps into the machine's zone, and dbt takes them for UTC. A
    timestamp without a zone comes as it is. -#}
{% macro spark__collect_freshness(source, loaded_at_field, filter) %}
    {%- call statement("collect_freshness", fetch_result=True, auto_begin=False) -%}
        select
            cast(max({{ loaded_at_field }}) as timestamp_ntz) as max_loaded_at,
            cast(current_timestamp() as timestamp_ntz) as snapshotted_at
        from {{ source }}
        {% if filter -%}
        where {{ filter }}
        {%- endif %}
    {%- endcall -%}
    {{ return(load_result("collect_freshness")) }}
{% endmacro %}
