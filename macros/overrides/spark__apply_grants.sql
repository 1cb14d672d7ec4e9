{#- Fixes `grants:` configs: Spark itself does not support GRANT, and models with grants would
    fail. Grants are applied on the targets in `grant_targets`, whose catalog supports them, and
    ignored elsewhere. -#}
{% macro spark__apply_grants(relation, grant_config, should_revoke=True) %}
    {%- if grant_config and target.name in var("grant_targets") -%}
        {{ return(dbt.default__apply_grants(relation, grant_config, should_revoke)) }}
    {%- endif -%}
{% endmacro %}
