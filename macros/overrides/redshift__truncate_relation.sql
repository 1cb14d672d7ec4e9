{#- Mends `dbt seed`: TRUNCATE commits at once there, so that others find an empty seed, and one
    whose run is killed stays empty. -#}
{% macro redshift__truncate_relation(relation) -%}
    {%- call statement("truncate_relation") -%}
        delete from {{ relation }}
    {%- endcall -%}
{%- endmacro %}
