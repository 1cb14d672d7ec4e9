{#- Both engines say it alike. The type is said again for what reads nested values as texts. -#}
{% macro nested_field(relation, column, field, type) -%}
    cast({{ relation }}.{{ column }}.{{ field }} as {{ adapter.dispatch("field_type")(type) }})
{%- endmacro %}

{% macro spark__field_type(type) -%}
    {{ return(type) }}
{%- endmacro %}

{% macro redshift__field_type(type) -%}
    {{ return({"int": "integer", "string": "varchar(65535)"}.get(type, type)) }}
{%- endmacro %}
