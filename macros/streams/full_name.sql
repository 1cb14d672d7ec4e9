{% macro full_name(user) -%}
    cast({{ user }}.last_name || ', ' || {{ user }}.first_name as varchar(512))
{%- endmacro %}
