{#- A value of a nested column, for the fixtures of unit tests. -#}
{% macro nested_literal(json, type) -%}
    {{ adapter.dispatch("nested_literal")(json, type) }}
{%- endmacro %}

{% macro spark__nested_literal(json, type) -%}
    from_json('{{ json }}', '{{ type }}')
{%- endmacro %}

{#- Nested values are untyped on Redshift. -#}
{% macro redshift__nested_literal(json, type) -%}
    json_parse('{{ json }}')
{%- endmacro %}
