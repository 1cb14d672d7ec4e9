{#- The incremental strategy `rewrite_keys`: the model gives, of each row of the database that
    changed, the version that held with its end, and those behind it; of the late ones all. -#}
{% macro get_incremental_rewrite_keys_sql(arg_dict) -%}
    {%- set target_relation = arg_dict["target_relation"] -%}
    {%- set increment = current_increment() -%}
    {%- set read = increment.reads.values() | first -%}
    {%- set columns = adapter.get_columns_in_relation(target_relation)
        | map(attribute="name") | list -%}
    {%- if increment.is_everything -%}
        {{ replace_rows(
            target_relation,
            "1 = 1",
            "select " ~ columns | join(", ") ~ " from " ~ arg_dict["temp_relation"],
        ) }}
    {%- elif read.after == read.to -%}
        select 'nothing is new' as outcome
    {%- else -%}
        {{ replace_versions(
            target_relation, arg_dict["temp_relation"], columns, increment.key,
            increment.late
        ) }}
    {%- endif -%}
{%- endmacro %}
