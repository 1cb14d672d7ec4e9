{#- Mends full refreshes on Spark: the adapter drops the table of an incremental model before it
    knows whether there will be another, so that a refused contract or a failing query leaves
    none. Its materialization of tables replaces one of Iceberg: the old rows are there until
    the new ones are. -#}
{% materialization incremental, adapter="spark" %}
    {%- set existing = load_relation(this) -%}
    {%- if existing and existing.is_iceberg and should_full_refresh() -%}
        {{ return(dbt.materialization_table_spark()) }}
    {%- endif -%}
    {{ return(dbt.materialization_incremental_spark()) }}
{% endmaterialization %}
