{#- Mends unit tests: dbt leaves the length of a text out so that none is cut, and a text
    without a length is one of 256 bytes there. -#}
{% macro redshift__safe_cast(field, type) -%}
    cast({{ field }} as {{ "varchar(65535)" if type == "character varying" else type }})
{%- endmacro %}
