{% macro is_in_lake(source) -%}
    {{ return(adapter.dispatch("is_in_lake")(source)) }}
{%- endmacro %}

{#- Spectrum's tables are in no list that the adapter reads: a missing one shows itself. -#}
{% macro default__is_in_lake(source) -%}
    {{ return(true) }}
{%- endmacro %}

{% macro spark__is_in_lake(source) -%}
    {{ return(
        load_relation(
            api.Relation.create(schema=source.schema, identifier=source.identifier)
        ) is not none
    ) }}
{%- endmacro %}
