{#- The streams that have a history, whose model is named after them. They stand here since dbt has to
    know what a model reads before it knows what there is. -#}
{% macro captured_histories() -%}
    {{ return([
        "moma.artists",
        "moma.artworks",
        "pagila.actor",
        "pagila.address",
        "pagila.category",
        "pagila.film",
        "pagila.film_actor",
        "pagila.film_category",
        "pagila.language",
        "tickit.date",
        "tickit.listing",
        "tickit.sale",
    ]) }}
{%- endmacro %}

{% macro name_of_history(stream) -%}
    {{ return("int_" ~ stream.replace(".", "__") ~ "_history") }}
{%- endmacro %}

{#- Whether the stream that a column names has a history, an SQL condition. -#}
{% macro has_history(stream) -%}
    {%- set names = [] -%}
    {%- for name in captured_histories() -%}
        {%- do names.append("'" ~ name ~ "'") -%}
    {%- endfor -%}
    {{ stream }} in ({{ names | join(", ") or "''" }})
{%- endmacro %}

{#- The dbt source of the stream that a column names. -#}
{% macro source_of_stream(stream) -%}
    split_part({{ stream }}, '.', 1)
{%- endmacro %}
