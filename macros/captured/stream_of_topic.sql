{#- SQL of a topic's captured stream; null for other topics. -#}
{% macro stream_of_topic(topic) -%}
    {%- set streams = {} -%}
    {%- for source in (graph.get("sources") or {}).values()
        if "captured" in source.config.meta.get("ingest", {}) -%}
        {%- do streams.update({
            source.config.meta.ingest.topic: source.source_name ~ "." ~ source.name
        }) -%}
    {%- endfor -%}
    {%- if not streams -%}
        {{ return("cast(null as varchar(256))") }}
    {%- endif -%}
    cast(
        case {{ topic }}
            {%- for name, stream in streams.items() | sort %}
            when '{{ name }}' then '{{ stream }}'
            {%- endfor %}
        end as varchar(256)
    )
{%- endmacro %}
