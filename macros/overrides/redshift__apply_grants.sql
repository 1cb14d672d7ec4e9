{#- Fixes `grants:` configs without grantees, as in this project unless `DBT_READERS` is set: the
    adapter would revoke grants that were made by hand. -#}
{% macro redshift__apply_grants(relation, grant_config, should_revoke=True) %}
    {%- if grant_config and grant_config.values() | sum(start=[]) -%}
        {{ return(dbt.redshift__apply_grants(
            relation, grant_config, should_revoke
        )) }}
    {%- endif -%}
{% endmacro %}
