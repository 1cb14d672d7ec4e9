{#- Mends `dbt source freshness` where the machine's zone is not UTC: in session mode
    Python gets timestamps in the machine's zone and dbt takes them for UTC. As ISO text
    they arrive as they are. -#}
{% macro spark__collect_freshness(source, loaded_at_field, filter) %}
    {%- call statement("collect_freshness", fetch_result=True, auto_begin=False) -%}
        select
            date_format(max({{ loaded_at_field }}), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
                as max_loaded_at,
            date_format(current_timestamp(), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
                as snapshotted_at
        from {{ source }}
        {% if filter -%}
        where {{ filter }}
        {%- endif %}
    {%- endcall -%}
    {{ return(load_result("collect_freshness")) }}
{% endmacro %}
