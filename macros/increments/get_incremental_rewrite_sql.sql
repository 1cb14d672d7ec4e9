{#- The incremental strategy `rewrite`: all rows of the touched days are replaced by those
    the model gives. A day that the model gives no row for becomes empty. -#}
{% macro get_incremental_rewrite_sql(arg_dict) -%}
    {%- set target_relation = arg_dict["target_relation"] -%}
    {%- set increment = current_increment() -%}
    {%- set condition = in_touched_days(increment, increment.time_column) -%}
    {%- if condition == "1 = 0" -%}
        select 'nothing is new' as outcome
    {%- else -%}
        {%- set columns = adapter.get_columns_in_relation(target_relation)
            | map(attribute="name") | join(", ") -%}
        {{ replace_rows(
            target_relation,
            condition,
            "select " ~ columns ~ " from " ~ arg_dict["temp_relation"],
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- What the model that runs said of its increment when it was compiled; none where it began
    none. -#}
{% macro current_increment() -%}
    {{ return(invocation_memory().get(
        "increment of " ~ this.schema ~ "." ~ this.identifier
    )) }}
{%- endmacro %}
