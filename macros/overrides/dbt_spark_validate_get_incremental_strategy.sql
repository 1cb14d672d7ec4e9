{#- Mends the incremental materialization, which appends where no strategy is named, though a
    `unique_key` is: rows with the key of others would double, where Redshift's adapter replaces
    them. -#}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) -%}
    {%- if config.get("unique_key") and not config.get("incremental_strategy") -%}
        {{ return("merge") }}
    {%- endif -%}
    {{ return(dbt.dbt_spark_validate_get_incremental_strategy(
        raw_strategy, file_format
    )) }}
{%- endmacro %}
