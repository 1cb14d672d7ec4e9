{#- Where a model's schema is: its bare name (staging, marts...) for the targets that
    `bare_schema_targets` lists, production and the local sandbox; everywhere else
    `<schema of the target>_<name>`, so that developers and pull requests share one lake
    without meeting. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {%- if custom_schema_name is none -%}
        {{ target.schema }}
    {%- elif target.name in var("bare_schema_targets") -%}
        {{ custom_schema_name | trim }}
    {%- else -%}
        {{ target.schema }}_{{ custom_schema_name | trim }}
    {%- endif -%}
{%- endmacro %}
