{#- After the rows are there: a run that dies in between reads the same rows again, and
    rewrites the same days to the same result. -#}
{% macro record_increment(inside_transaction=true) -%}
    {%- set increment = current_increment() if execute else none -%}
    {#- What --empty makes has read nothing; the next run says so. -#}
    {%- if increment and hook_commits(inside_transaction) and not flags.EMPTY and (
        increment.is_everything or is_anything_read(increment)
    ) -%}
        {%- do assert_nobody_else_built(increment) -%}
        {{ read_points_statement(increment, "to") }}
    {%- endif -%}
{%- endmacro %}

{#- Two runs at one time may each have replaced what the other wrote. Then nobody has read
    anything: the next run reads it once more, and its rows are right again. -#}
{% macro assert_nobody_else_built(increment) -%}
    {%- set newest = run_query(
        "select max(increment_id) as newest from " ~ increment_tables().read_points
        ~ " where model_name = '" ~ increment.model_name ~ "'"
    ).rows[0][0] -%}
    {%- if (newest or 0) | int != increment.committed -%}
        {%- do run_query(read_points_statement(increment, "after")) -%}
        {{ exceptions.raise_compiler_error(
            "another run of dbt built " ~ increment.model_name ~ " at the same time: "
            ~ "let it end, then run `dbt build --select " ~ this.identifier ~ "+`"
        ) }}
    {%- endif -%}
{%- endmacro %}

{% macro read_points_statement(increment, bound) -%}
    {%- set selects = [] -%}
    {%- for source_name, read in increment.reads.items() -%}
        {%- do selects.append(
            "select '" ~ increment.model_name ~ "', '" ~ source_name ~ "', cast("
            ~ read[bound] ~ " as bigint), cast(" ~ increment.id ~ " as bigint), "
            ~ sql_literal(increment.settings) ~ ", " ~ dbt.current_timestamp()
        ) -%}
    {%- endfor -%}
    {%- set table = increment_tables().read_points -%}
    {{ in_own_transaction(table, replace_rows(
        table,
        "model_name = '" ~ increment.model_name ~ "'",
        selects | join(" union all "),
    )) }}
{%- endmacro %}

{% macro is_anything_read(increment) -%}
    {%- for read in increment.reads.values() if read.to != read.after -%}
        {{ return(true) }}
    {%- endfor -%}
    {{ return(increment.days | length > 0 or increment.has_timeless) }}
{%- endmacro %}
