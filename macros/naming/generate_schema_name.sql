{#- Where a model's schema is: its bare name (staging, marts…) on the targets that the variable
    `bare_schema_targets` lists, production and the local sandbox; everywhere else `<schema of the
    target>_<name>`, so that developers and pull requests share one lake without meeting. A schema
    that begins with `dbt_cloud_pr_` is prefixed on every target. -#}
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
