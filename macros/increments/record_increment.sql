{#- After the rows are there: a run that dies in between reads the same rows again, and
    rewrites the same days to the same result. -#}
{% macro record_increment(increment) -%}
    {%- if increment.is_everything or is_anything_read(increment) -%}
        {%- set since = recorded_since(increment) -%}
        {%- do assert_nobody_else_built(increment, since, has_written=true) -%}
        {%- do increment.update({
            "unfinished": still_unfinished(increment, since.others), "is_recorded": true,
        }) -%}
        {%- do run_query(read_points_statement(increment, "to", increment.id)) -%}
    {%- endif -%}
{%- endmacro %}

{#- The newest increment of the model that was recorded, and the runs that announced one since
    this run began. -#}
{% macro recorded_since(increment) -%}
    {%- set tables = increment_tables() -%}
    {%- set newest = [0] -%}
    {%- set others = [] -%}
    {#- The few rows as they are: to aggregate them takes Spark longer than to give them. -#}
    {%- for row in run_query(
        "select 'read' as kind, increment_id from " ~ tables.read_points
        ~ " where model_name = '" ~ increment.model_name ~ "'"
        ~ " union all select run_id, increment_id from " ~ tables.touched_days
        ~ " where model_name = '" ~ increment.model_name ~ "' and increment_id > "
        ~ increment.committed ~ " and run_id <> '" ~ invocation_id ~ "'"
    ).rows -%}
        {%- if row[0] == "read" -%}
            {%- do newest.append(row[1] | int) -%}
        {%- elif row[0] not in others -%}
            {%- do others.append(row[0]) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return({"newest": newest | max, "others": others}) }}
{%- endmacro %}

{#- Stops a run when another one recorded an increment of the same model meanwhile; where rows were
    written, after it has made sure that the next run reads again what the two have read. Two runs
    at one time may each have replaced what the other wrote. Then nobody has read anything: the
    next run reads it once more, rewrites the days of this one too, and its rows are right again.
    Before a row was written it is enough to stop. -#}
{% macro assert_nobody_else_built(increment, since, has_written) -%}
    {%- if since.newest != increment.committed -%}
        {%- if has_written -%}
            {%- set unfinished = still_unfinished(increment, since.others) -%}
            {%- do unfinished.update({
                invocation_id: {"since": "ended", "after": read_before(increment)}
            }) -%}
            {%- do increment.update({"unfinished": unfinished}) -%}
            {%- do run_query(read_points_statement(
                increment, "after", [since.newest, increment.id] | max
            )) -%}
            {%- do increment.update({"is_recorded": true}) -%}
        {%- endif -%}
        {{ stop(
            "another run of dbt built " ~ increment.model_name
            ~ " at the same time. When it has ended",
            "dbt build --select " ~ this.identifier ~ "+",
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Runs that may still write, or may have died when they did, with when they were first
    seen and how far the model had read then: they may replace what was read since with rows
    of before. Their days are rewritten again and again until they have ended, or for a day: no run
    takes longer. What was rewritten whole need not wait for those that it has seen. -#}
{% macro still_unfinished(increment, others) -%}
    {%- set form = "%Y-%m-%dT%H:%M:%S" -%}
    {%- set now = run_started_at.strftime(form) -%}
    {%- set yesterday = (
        run_started_at - modules.datetime.timedelta(days=1)
    ).strftime(form) -%}
    {%- set ended, seen = [], [] -%}
    {%- for row in increment.recorded.days
        if row.model_name == increment.model_name -%}
        {%- do seen.append(row.run_id) -%}
        {%- if row.is_end -%}
            {%- do ended.append(row.run_id) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set runs = {} -%}
    {%- for run_id in others -%}
        {%- do runs.update({
            run_id: {"since": now, "after": read_before(increment)}
        }) -%}
    {%- endfor -%}
    {%- do runs.update(increment.unfinished) -%}
    {%- set still = {} -%}
    {%- for run_id, run in runs.items()
        if run_id not in ended and run.since != "ended" and run.since > yesterday
        and not (increment.is_everything and run_id in seen) -%}
        {%- do still.update({run_id: run}) -%}
    {%- endfor -%}
    {{ return(still) }}
{%- endmacro %}

{#- By source, how far the model had read when this increment began. -#}
{% macro read_before(increment) -%}
    {%- set before = {} -%}
    {%- for source_name, read in increment.reads.items() -%}
        {%- do before.update({source_name: read.after}) -%}
    {%- endfor -%}
    {{ return(before) }}
{%- endmacro %}

{#- As the last increment recorded them. -#}
{% macro unfinished_runs(increment) -%}
    {%- set mine = own_reads(increment) -%}
    {{ return(fromjson(mine[0].unfinished) if mine else {}) }}
{%- endmacro %}

{#- A statement that records how far an increment has read. -#}
{% macro read_points_statement(increment, bound, increment_id) -%}
    {%- set rows = [] -%}
    {%- for source_name, read in increment.reads.items() -%}
        {%- do rows.append({
            "model_name": "'" ~ increment.model_name ~ "'",
            "source_name": "'" ~ source_name ~ "'",
            "read_to": "cast(" ~ read[bound] ~ " as bigint)",
            "increment_id": "cast(" ~ increment_id ~ " as bigint)",
            "settings": sql_literal(increment.settings),
            "recorded_at": dbt.current_timestamp(),
            "table_uuid": (
                "cast(" ~ (sql_literal(read.table_uuid) if read.table_uuid else "null")
                ~ " as varchar(64))"
            ),
            "code": sql_literal(increment.code),
            "unfinished": sql_literal(tojson(increment.unfinished, sort_keys=true)),
            "table_since": "cast(" ~ read.table_since ~ " as bigint)",
        }) -%}
    {%- endfor -%}
    {%- set table = increment_tables().read_points -%}
    {{ in_own_transaction(table, replace_rows(
        table,
        "model_name = '" ~ increment.model_name ~ "'",
        value_rows(rows),
    )) }}
{%- endmacro %}

{#- Whether an increment reads or changes anything. A table or code that an older lake does not
    know is worth a row, too. -#}
{% macro is_anything_read(increment) -%}
    {%- for read in increment.reads.values() if read.to != read.after -%}
        {{ return(true) }}
    {%- endfor -%}
    {%- for mine in own_reads(increment) if mine.source_name in increment.reads -%}
        {%- set read = increment.reads[mine.source_name] -%}
        {%- if mine.code != increment.code
            or (read.table_uuid and (
                read.table_uuid != mine.table_uuid or read.table_since != mine.table_since
            )) -%}
            {{ return(true) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(increment.days | length > 0 or increment.has_timeless) }}
{%- endmacro %}
