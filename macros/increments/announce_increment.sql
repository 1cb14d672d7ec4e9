{#- Before a row is changed: a run that dies in between has told which days are different.
    Days of such a run, and of this one, get this increment's number, the others keep
    theirs. -#}
{% macro announce_increment(inside_transaction=true) -%}
    {%- set increment = current_increment() if execute else none -%}
    {%- if increment and hook_commits(inside_transaction) and is_read_by_increments() and (
        increment.is_everything or increment.has_timeless or increment.days
    ) -%}
        {%- set rows = [] -%}
        {%- if increment.is_everything -%}
            {%- do rows.append([none, true, increment.id]) -%}
        {%- else -%}
            {%- if increment.has_timeless -%}
                {%- do rows.append([none, false, increment.id]) -%}
            {%- endif -%}
            {%- for day in increment.days | sort -%}
                {%- do rows.append([day, day == increment.onwards_from, increment.id]) -%}
            {%- endfor -%}
            {%- for row in increment.recorded.days
                if row.model_name == increment.model_name -%}
                {%- set is_newer = (
                    increment.has_timeless if row.day is none and not row.is_onwards
                    else row.day in increment.days
                    and (row.day == increment.onwards_from or not row.is_onwards)
                ) -%}
                {%- if not is_newer -%}
                    {%- do rows.append([row.day, row.is_onwards, row.increment_id]) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endif -%}
        {%- set selects = [] -%}
        {%- for day, is_onwards, id in rows -%}
            {%- do selects.append(
                "select '" ~ increment.model_name ~ "', cast("
                ~ ("'" ~ day.isoformat() ~ "'" if day is not none else "null")
                ~ " as date), " ~ ("true" if is_onwards else "false")
                ~ ", cast(" ~ id ~ " as bigint)"
            ) -%}
        {%- endfor -%}
        {%- set table = increment_tables().touched_days -%}
        {{ in_own_transaction(table, replace_rows(
            table,
            "model_name = '" ~ increment.model_name ~ "'",
            selects | join(" union all "),
        )) }}
    {%- endif -%}
{%- endmacro %}

{% macro is_read_by_increments() -%}
    {%- for node in graph.nodes.values() -%}
        {%- if node.config.materialized == "incremental"
            and model.unique_id in node.depends_on.nodes -%}
            {{ return(true) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}
