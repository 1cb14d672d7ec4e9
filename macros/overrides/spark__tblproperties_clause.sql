{#- Adds the checksum of the code that makes a table or a view to its properties. Mends the
    properties of tables and views, among which the adapter cannot have what is known only when dbt
    runs: which code made them. An increment of a history replaces the current versions of rows all
    over the table: it writes deletes beside their files, where copies of all these files would
    grow with the table. -#}
{% macro spark__tblproperties_clause(others={}) -%}
    {%- set properties = dict(others) -%}
    {%- if config.get("materialized") == "incremental"
        and config.get("incremental_strategy") == "rewrite_keys" -%}
        {%- do properties.update({"write.merge.mode": "merge-on-read"}) -%}
    {%- endif -%}
    {%- do properties.update(config.get("tblproperties") or {}) -%}
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
