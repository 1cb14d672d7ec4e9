{#- The texts of an array in one, in their order and with commas between them. A null among them is
    the word null, an empty array an empty text; null is only what is no array. -#}
{% macro array_text(array) -%}
    {{ adapter.dispatch("array_text")(array) }}
{%- endmacro %}

{% macro spark__array_text(array) -%}
    array_join({{ array }}, ', ', 'null')
{%- endmacro %}

{#- An array that is empty has no row to make a text of, as little as one that is null. -#}
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
