{% macro array_text(array) -%}
    {{ adapter.dispatch("array_text")(array) }}
{%- endmacro %}

{#- An empty array is null, as it is where an aggregate makes the text. -#}
{% macro spark__array_text(array) -%}
    nullif(array_join(array_sort({{ array }}), ', '), '')
{%- endmacro %}

{% macro redshift__array_text(array) -%}
    (
            select listagg(cast(element as varchar(1024)), ', ')
                within group (order by cast(element as varchar(1024)))
            from {{ array }} as element
        )
{%- endmacro %}
