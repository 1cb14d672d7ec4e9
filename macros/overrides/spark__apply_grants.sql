{#- Mends `grants:` configurations: Spark itself has no GRANT, and any model with one would
    fail. Grants are applied on the targets that `grant_targets` lists, where a catalogue
    understands them, and left alone elsewhere. -#}
{% macro spark__apply_grants(relation, grant_config, should_revoke=True) %}
    {%- if grant_config and target.name in var("grant_targets") -%}
        {{ return(dbt.default__apply_grants(relation, grant_config, should_revoke)) }}
    {%- endif -%}
{% endmacro %}
