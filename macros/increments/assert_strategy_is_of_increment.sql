{#- Stops a model that has a strategy of the project's and begins no increment, or the other way
    round. The strategies of ours write what an increment found, and nothing else knows how: a
    model has both or none. Without either it is dbt's own. -#}
{% macro assert_strategy_is_of_increment(increment) -%}
    {%- set strategy = model.config.incremental_strategy or "the adapter's own" -%}
    {%- if model.config.materialized != "incremental" -%}
        {{ return("") }}
    {%- elif strategy in strategies_of_increments() and not increment -%}
        {{ exceptions.raise_compiler_error(
            this.identifier ~ " has the incremental_strategy " ~ strategy ~ " and begins no "
            ~ "increment: begin it with `begin_increment`, or leave the strategy to the adapter"
        ) }}
    {%- elif increment and strategy not in strategies_of_increments() -%}
        {{ exceptions.raise_compiler_error(
            this.identifier ~ " begins an increment, and its incremental_strategy is " ~ strategy
            ~ ": set it to " ~ strategies_of_increments() | join(" or ")
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- The incremental strategies of the project. -#}
{% macro strategies_of_increments() -%}
    {{ return(["rewrite", "rewrite_keys"]) }}
{%- endmacro %}
