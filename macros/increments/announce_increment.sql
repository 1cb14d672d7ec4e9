{#- Before a row is changed: a run that dies in between has told which days are different.
    It adds to what others told, and looks afterwards whether one of them has ended meanwhile:
    of two runs at one time at least one sees the other. Facts that no other fact reads tell,
    too: what a run that died beside another wrote is known from nowhere else. -#}
{% macro announce_increment(increment) -%}
    {%- if model.config.materialized == "incremental" and (
        increment.is_everything or increment.has_timeless or increment.days
    ) -%}
        {%- set rows = [] -%}
        {%- if increment.is_everything -%}
            {%- do rows.append([none, true]) -%}
        {%- else -%}
            {%- if increment.has_timeless -%}
                {%- do rows.append([none, false]) -%}
            {%- endif -%}
            {%- for day in increment.days | sort -%}
                {%- do rows.append([day, day == increment.onwards_from]) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do run_query(touched_days_statement(increment, rows)) -%}
        {%- do increment.update({"is_announced": true}) -%}
        {%- do assert_nobody_else_built(
            increment, recorded_since(increment), has_written=false
        ) -%}
    {%- endif -%}
{%- endmacro %}

{#- A statement that records which days an increment changes. Rows are added, and each twentieth
    time put together: what is told again goes then. Only rows that this run has seen are replaced. -#}
{% macro touched_days_statement(increment, rows) -%}
    {%- set table = increment_tables().touched_days -%}
    {%- set told = [] -%}
    {%- for day, is_onwards in rows -%}
        {%- do told.append(touched_day_row(
            increment, day, "true" if is_onwards else "false", increment.id, invocation_id
        )) -%}
    {%- endfor -%}
    {%- if not increment.is_everything and increment.id % 20 != 0 -%}
        {{ return(in_own_transaction(
            table, "insert into " ~ table ~ "\n" ~ value_rows(told)
        )) }}
    {%- endif -%}
    {%- for row in kept_days(increment, rows) -%}
        {%- do told.append(touched_day_row(
            increment,
            row.day,
            "null" if row.is_end else ("true" if row.is_onwards else "false"),
            row.increment_id,
            row.run_id,
        )) -%}
    {%- endfor -%}
    {{ return(in_own_transaction(table, replace_rows(
        table,
        "model_name = '" ~ increment.model_name ~ "' and increment_id < " ~ increment.id,
        value_rows(told),
    ))) }}
{%- endmacro %}

{#- One row of it. -#}
{% macro touched_day_row(increment, day, is_onwards, increment_id, run_id) -%}
    {{ return({
        "model_name": "'" ~ increment.model_name ~ "'",
        "touched_date": (
            "cast(" ~ ("'" ~ day.isoformat() ~ "'" if day is not none else "null")
            ~ " as date)"
        ),
        "is_onwards": "cast(" ~ is_onwards ~ " as boolean)",
        "increment_id": "cast(" ~ increment_id ~ " as bigint)",
        "run_id": "'" ~ run_id ~ "'",
    }) }}
{%- endmacro %}

{#- What was told before and still says something: of each day the newest, and whatever a
    run told whose end nobody knows. -#}
{% macro kept_days(increment, rows) -%}
    {%- set seen = [] -%}
    {%- for row in rows -%}
        {%- do seen.append(row) -%}
    {%- endfor -%}
    {%- set kept = [] -%}
    {%- for row in increment.recorded.days | sort(attribute="increment_id", reverse=true)
        if row.model_name == increment.model_name -%}
        {%- if row.run_id in increment.unfinished -%}
            {%- do kept.append(row) -%}
        {%- elif not (
            increment.is_everything or row.is_end or [row.day, row.is_onwards] in seen
            or [row.day, true] in seen
        ) -%}
            {%- do seen.append([row.day, row.is_onwards]) -%}
            {%- do kept.append(row) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(kept) }}
{%- endmacro %}

{#- After a run: increments that failed have ended, and need not be waited for. -#}
{% macro end_increments() -%}
    {%- if execute -%}
        {%- for key, increment in invocation_memory().items()
            if key.startswith("increment of ")
            and increment.is_announced and not increment.is_recorded -%}
            {%- set table = increment_tables().touched_days -%}
            {%- do run_query(in_own_transaction(
                table,
                "insert into " ~ table ~ "\n" ~ value_rows([touched_day_row(
                    increment, none, "null", increment.id, invocation_id
                )]),
            )) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
