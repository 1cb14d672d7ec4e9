{% macro array_rows(relation, columns, array, fields) -%}
    {{ adapter.dispatch("array_rows")(relation, columns, array, fields) }}
{%- endmacro %}

{% macro spark__array_rows(relation, columns, array, fields) -%}
    select
        {% for column in columns -%}
        whole.{{ column }},
        {% endfor -%}
        {% for field, (name, type) in fields.items() -%}
        cast(element.{{ field }} as {{ type }}) as {{ name }}{{ "," if not loop.last }}
        {% endfor -%}
    from {{ relation }} as whole
    lateral view explode(whole.{{ array }}) elements as element
{%- endmacro %}

{#- Redshift joins a table with its own array, whose elements are untyped until they are cast.
    Fields are quoted because names such as `partition` are reserved. -#}
{% macro redshift__array_rows(relation, columns, array, fields) -%}
    select
        {% for column in columns -%}
        whole.{{ column }},
        {% endfor -%}
        {% for field, (name, type) in fields.items() -%}
        cast(element."{{ field }}" as {{ type }}) as {{ name }}{{ "," if not loop.last }}
        {% endfor -%}
    from {{ relation }} as whole, whole.{{ array }} as element
{%- endmacro %}
