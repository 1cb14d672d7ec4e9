{#- The bronze table of a stream. -#}
{% macro bronze_table(stream) -%}
    {%- for source in graph.sources.values() -%}
        {%- if source.source_name ~ "." ~ source.name == stream -%}
            {{ return(
                api.Relation.create(schema=source.schema, identifier=source.identifier)
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "no dbt source is named " ~ stream ~ ": name it like pagila.sales"
    ) }}
{%- endmacro %}
