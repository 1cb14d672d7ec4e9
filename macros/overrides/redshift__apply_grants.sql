{#- Mends `grants:` configurations that name nobody, as ours do unless `DBT_READERS` is set:
    the adapter would take their rights from all whom somebody gave them by hand. -#}
{% macro redshift__apply_grants(relation, grant_config, should_revoke=True) %}
    {%- if grant_config and grant_config.values() | sum(start=[]) -%}
        {{ return(dbt.redshift__apply_grants(
            relation, grant_config, should_revoke
        )) }}
    {%- endif -%}
{% endmacro %}
