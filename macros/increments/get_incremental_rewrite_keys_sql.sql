{#- The incremental strategy `rewrite_keys`. A history gives, of each row of the database that
    changed, the version that held with its end, and those behind it; of the late ones all. A mart
    that follows captured tables gives the rows of its `changed_keys`. -#}
{% macro get_incremental_rewrite_keys_sql(arg_dict) -%}
    {%- set target_relation = arg_dict["target_relation"] -%}
    {%- set increment = current_increment() -%}
    {%- set new = [] -%}
    {%- for read in increment.reads.values() if read.after != read.to -%}
        {%- do new.append(read) -%}
    {%- endfor -%}
    {%- set columns = adapter.get_columns_in_relation(target_relation)
        | map(attribute="name") | list -%}
    {%- if increment.is_everything -%}
        {{ replace_rows(
            target_relation,
            "1 = 1",
            "select " ~ columns | join(", ") ~ " from " ~ arg_dict["temp_relation"],
        ) }}
    {%- elif not new -%}
        select 'nothing is new' as outcome
    {%- elif increment.own_changes -%}
        {{ replace_changed_rows(
            target_relation, arg_dict["temp_relation"], columns, increment.key,
            "select distinct " ~ increment.key ~ " from (" ~ increment.own_changes ~ ") as own"
        ) }}
    {%- else -%}
        {{ replace_versions(
            target_relation, arg_dict["temp_relation"], columns, increment.key,
            increment.late
        ) }}
    {%- endif -%}
{%- endmacro %}
