{#- The syntax is the same on both engines. The cast is for engines that read nested values as
    text. -#}
{% macro nested_field(relation, column, field, type) -%}
    cast({{ relation }}.{{ column }}.{{ field }} as {{ adapter.dispatch("field_type")(type) }})
{%- endmacro %}

{% macro spark__field_type(type) -%}
    {{ return(type) }}
{%- endmacro %}

{% macro redshift__field_type(type) -%}
    {{ return({"int": "integer", "string": "varchar(65535)"}.get(type, type)) }}
{%- endmacro %}
