{% macro generate_schema_name(custom_schema_name, node) -%}
    {#- The dbt platform gives each pull request a schema of its own, whatever the job's target is
        called, and drops what begins with it. -#}
    {%- set is_bare = (
        target.name in var("bare_schema_targets")
        and not target.schema.startswith("dbt_cloud_pr_")
    ) -%}
    {%- if custom_schema_name is none -%}
        {{ target.schema }}
    {%- elif is_bare -%}
        {{ custom_schema_name | trim }}
    {%- else -%}
        {{ target.schema }}_{{ custom_schema_name | trim }}
    {%- endif -%}
{%- endmacro %}
