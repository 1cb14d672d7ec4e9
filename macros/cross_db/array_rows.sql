{% macro array_rows(relation, columns, array, fields) -%}
    {{ adapter.dispatch("array_rows")(relation, columns, array, fields) }}
{%- endmacro %}

{% macro spark__array_rows(relation, columns, array, fields) -%}
    select
        {% for column in columns -%}
        whole.{{ column }},
        {% endfor -%}
        {% for field, name in fields.items() -%}
        element.{{ field }} as {{ name }}{{ "," if not loop.last }}
        {% endfor -%}
    from {{ relation }} as whole
    lateral view explode(whole.{{ array }}) elements as element
{%- endmacro %}

{#- Spectrum joins a table with its own array. `partition`, for one, is a word of its own
    there: fields are quoted. -#}
{% macro redshift__array_rows(relation, columns, array, fields) -%}
    select
        {% for column in columns -%}
        whole.{{ column }},
        {% endfor -%}
        {% for field, name in fields.items() -%}
        element."{{ field }}" as {{ name }}{{ "," if not loop.last }}
        {% endfor -%}
    from {{ relation }} as whole, whole.{{ array }} as element
{%- endmacro %}
