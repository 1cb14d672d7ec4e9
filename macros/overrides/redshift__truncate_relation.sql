{#- Fixes `dbt seed`: TRUNCATE commits immediately on Redshift, so that readers see an empty seed,
    which remains empty if the run fails. -#}
{% macro redshift__truncate_relation(relation) -%}
    {%- call statement("truncate_relation") -%}
        delete from {{ relation }}
    {%- endcall -%}
{%- endmacro %}
