{#- Fixes `tblproperties`, which cannot contain values that are known only at run time: adds the
    code checksum. An increment of a history replaces current versions all over the table:
    merge-on-read writes delete files, where copy-on-write would rewrite most data files. -#}
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
