{#- A model's schema: its bare name (staging, marts…) on the targets in the variable
    `bare_schema_targets`, production and the local sandbox; on others `<target schema>_<name>`,
    so that developers and pull requests can share one lake. A target schema that begins with
    `dbt_cloud_pr_` is a prefix on every target. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {#- The dbt platform creates a schema for each pull request, whatever the job's target, and
        drops schemas with that prefix. -#}
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
