{#- Mends the incremental materialization, which knows only the adapter's own strategies and
    asks no `get_incremental_<strategy>_sql` as dbt's other adapters do. And which appends where no
    strategy is named, though a `unique_key` is: rows with the key of others would double, where
    Redshift's adapter replaces them. -#}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) -%}
    {%- if raw_strategy in strategies_of_increments() -%}
        {{ return(raw_strategy) }}
    {%- elif config.get("unique_key") and not config.get("incremental_strategy") -%}
        {{ return("merge") }}
    {%- endif -%}
    {{ return(dbt.dbt_spark_validate_get_incremental_strategy(
        raw_strategy, file_format
    )) }}
{%- endmacro %}

{#- Gives the statement of the strategy `rewrite`; the others are the adapter's. -#}
{% macro dbt_spark_get_incremental_sql(
    strategy, source, target, existing, unique_key, incremental_predicates
) -%}
    {%- set relations = {"target_relation": target, "temp_relation": source} -%}
    {%- if strategy == "rewrite" -%}
        {{ return(get_incremental_rewrite_sql(relations)) }}
    {%- elif strategy == "rewrite_keys" -%}
        {{ return(get_incremental_rewrite_keys_sql(relations)) }}
    {%- endif -%}
    {{ return(dbt.dbt_spark_get_incremental_sql(
        strategy, source, target, existing, unique_key, incremental_predicates
    )) }}
{%- endmacro %}
