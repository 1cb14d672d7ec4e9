{#- Mends the properties of tables and views, among which the adapter cannot have what is known
    only when dbt runs: which code made them. -#}
{% macro spark__tblproperties_clause() -%}
    {%- set properties = dict(config.get("tblproperties") or {}) -%}
    {%- set checksum = checksum_to_record() -%}
    {%- if checksum -%}
        {%- do properties.update({"millrace.code": checksum}) -%}
    {%- endif -%}
    {%- set pairs = [] -%}
    {%- for name, value in properties.items() -%}
        {%- do pairs.append(text_literal(name) ~ " = " ~ text_literal(value)) -%}
    {%- endfor -%}
    {%- if pairs %}
    tblproperties ({{ pairs | join(", ") }})
    {%- endif -%}
{%- endmacro %}
