{#- After the rows are there: a run that dies in between reads the same rows again, and
    rewrites the same days to the same result. -#}
{% macro record_increment() -%}
    {%- set increment = current_increment() if execute else none -%}
    {#- What --empty makes has read nothing; the next run says so. -#}
    {%- if increment and not flags.EMPTY and (increment.is_everything or is_anything_read(increment)) -%}
        {%- set selects = [] -%}
        {%- for source_name, read in increment.reads.items() -%}
            {%- do selects.append(
                "select '" ~ increment.model_name ~ "', '" ~ source_name ~ "', cast("
                ~ read.to ~ " as bigint), cast(" ~ increment.id ~ " as bigint), "
                ~ sql_literal(increment.settings) ~ ", current_timestamp"
            ) -%}
        {%- endfor -%}
        {{ replace_rows(
            increment_tables().read_points,
            "model_name = '" ~ increment.model_name ~ "'",
            selects | join(" union all "),
        ) }}
    {%- endif -%}
{%- endmacro %}

{% macro is_anything_read(increment) -%}
    {%- for read in increment.reads.values() if read.to != read.after -%}
        {{ return(true) }}
    {%- endfor -%}
    {{ return(increment.days | length > 0 or increment.has_timeless) }}
{%- endmacro %}
