{#- The elements of an array as one text, in order and separated by commas. A null element becomes
    the word null, an empty array an empty text, a null array null. -#}
{% macro array_text(array) -%}
    {{ adapter.dispatch("array_text")(array) }}
{%- endmacro %}

{% macro spark__array_text(array) -%}
    array_join({{ array }}, ', ', 'null')
{%- endmacro %}

{#- Like a null array, an empty one has no rows to aggregate. -#}
{% macro redshift__array_text(array) -%}
    case
            when {{ array }} is not null
                then coalesce(
                    (
                        select
                            listagg(
                                coalesce(cast(element as varchar(65535)), 'null'), ', '
                            ) within group (order by place)
                        from {{ array }} as element at place
                    ),
                    ''
                )
        end
{%- endmacro %}
