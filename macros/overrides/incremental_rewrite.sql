{#- Mends the incremental materialization, which knows only the adapter's own strategies and
    asks no `get_incremental_<strategy>_sql` as dbt's other adapters do. -#}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) -%}
    {%- if raw_strategy == "rewrite" -%}
        {{ return(raw_strategy) }}
    {%- endif -%}
    {{ return(dbt_spark.dbt_spark_validate_get_incremental_strategy(
        raw_strategy, file_format
    )) }}
{%- endmacro %}

{% macro dbt_spark_get_incremental_sql(
    strategy, source, target, existing, unique_key, incremental_predicates
) -%}
    {%- if strategy == "rewrite" -%}
        {{ return(get_incremental_rewrite_sql(
            {"target_relation": target, "temp_relation": source}
        )) }}
    {%- endif -%}
    {{ return(dbt_spark.dbt_spark_get_incremental_sql(
        strategy, source, target, existing, unique_key, incremental_predicates
    )) }}
{%- endmacro %}
