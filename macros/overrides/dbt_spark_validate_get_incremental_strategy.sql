{#- Fixes the default incremental strategy, which is append even with a `unique_key`: rows would
    be duplicated, where dbt-redshift replaces them. -#}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) -%}
    {%- if config.get("unique_key") and not config.get("incremental_strategy") -%}
        {{ return("merge") }}
    {%- endif -%}
    {{ return(dbt.dbt_spark_validate_get_incremental_strategy(
        raw_strategy, file_format
    )) }}
{%- endmacro %}
