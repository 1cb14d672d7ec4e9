{#- The relations of the two tables that increments keep their state in. Both are small. A column is
    added at the end: an older lake gets it at its next run. -#}
{% macro increment_tables() -%}
    {{ return({
        "read_points": api.Relation.create(
            schema=generate_schema_name("state", none), identifier="read_points"
        ),
        "touched_days": api.Relation.create(
            schema=generate_schema_name("state", none), identifier="touched_days"
        ),
    }) }}
{%- endmacro %}

{#- The columns of the two tables, with their types. -#}
{% macro increment_columns() -%}
    {{ return({
        "read_points": {
            "model_name": "varchar(256)",
            "source_name": "varchar(256)",
            "read_to": "bigint",
            "increment_id": "bigint",
            "settings": "varchar(4096)",
            "recorded_at": "timestamp",
            "table_uuid": "varchar(64)",
            "code": "varchar(16000)",
            "unfinished": "varchar(16000)",
            "table_since": "bigint",
        },
        "touched_days": {
            "model_name": "varchar(256)",
            "touched_date": "date",
            "is_onwards": "boolean",
            "increment_id": "bigint",
            "run_id": "varchar(64)",
        },
    }) }}
{%- endmacro %}

{#- `dbt compile` and `dbt docs generate` make no tables and no columns: before the first
    build there are none. -#}
{% macro are_increments_recorded() -%}
    {%- if rendered_branch() is not none -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- if "are increments recorded" not in memory -%}
        {%- set table = increment_tables().read_points -%}
        {%- do memory.update({"are increments recorded": (
            adapter.check_schema_exists(target.database, table.schema)
            and "table_since" in (
                adapter.get_columns_in_relation(table) | map(attribute="name") | list
            )
        )}) -%}
    {%- endif -%}
    {{ return(memory["are increments recorded"]) }}
{%- endmacro %}

{#- Before a row is changed: a run that dies in between has told which days are different.
    It adds to what others told, and looks afterwards whether one of them has ended meanwhile:
    of two runs at one time at least one sees the other. Facts that no other fact reads tell,
    too: what a run that died beside another wrote is known from nowhere else. -#}
{% macro record_intent(increment) -%}
    {%- if model.config.materialized == "incremental" and (
        increment.is_full_refresh or increment.has_undated or increment.days
    ) -%}
        {%- set rows = [] -%}
        {%- if increment.is_full_refresh -%}
            {%- do rows.append([none, true]) -%}
        {%- else -%}
            {%- if increment.has_undated -%}
                {%- do rows.append([none, false]) -%}
            {%- endif -%}
            {%- for day in increment.days | sort -%}
                {%- do rows.append([day, day == increment.onwards_from]) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do run_query(affected_days_statement(increment, rows)) -%}
        {%- do increment.update({"is_intent_recorded": true}) -%}
        {%- do assert_no_concurrent_build(
            increment, recorded_since(increment), has_written=false
        ) -%}
    {%- endif -%}
{%- endmacro %}

{#- A statement that records which days an increment changes. Rows are added, and each twentieth
    time put together: what is told again goes then. Only rows that this run has seen are replaced. -#}
{% macro affected_days_statement(increment, rows) -%}
    {%- set table = increment_tables().touched_days -%}
    {%- set recorded = [] -%}
    {%- for day, is_onwards in rows -%}
        {%- do recorded.append(affected_day_row(
            increment, day, "true" if is_onwards else "false", increment.id, invocation_id
        )) -%}
    {%- endfor -%}
    {%- if not increment.is_full_refresh and increment.id % 20 != 0 -%}
        {{ return(in_own_transaction(
            table, "insert into " ~ table ~ "\n" ~ written_rows(recorded)
        )) }}
    {%- endif -%}
    {%- for row in days_to_keep(increment, rows) -%}
        {%- do recorded.append(affected_day_row(
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
        written_rows(recorded),
    ))) }}
{%- endmacro %}

{#- One row of it. -#}
{% macro affected_day_row(increment, day, is_onwards, increment_id, run_id) -%}
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
{% macro days_to_keep(increment, rows) -%}
    {%- set seen = [] -%}
    {%- for row in rows -%}
        {%- do seen.append(row) -%}
    {%- endfor -%}
    {%- set remaining = [] -%}
    {%- for row in increment.recorded.days | sort(attribute="increment_id", reverse=true)
        if row.model_name == increment.model_name -%}
        {%- if row.run_id in increment.unfinished -%}
            {%- do remaining.append(row) -%}
        {%- elif not (
            increment.is_full_refresh or row.is_end or [row.day, row.is_onwards] in seen
            or [row.day, true] in seen
        ) -%}
            {%- do seen.append([row.day, row.is_onwards]) -%}
            {%- do remaining.append(row) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(remaining) }}
{%- endmacro %}

{#- After a run: increments that failed have ended, and need not be waited for. -#}
{% macro end_increments() -%}
    {%- if execute -%}
        {%- for key, increment in invocation_memory().items()
            if key.startswith("increment of ")
            and increment.is_intent_recorded and not increment.is_recorded -%}
            {%- set table = increment_tables().touched_days -%}
            {%- do run_query(in_own_transaction(
                table,
                "insert into " ~ table ~ "\n" ~ written_rows([affected_day_row(
                    increment, none, "null", increment.id, invocation_id
                )]),
            )) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- After the rows are there: a run that dies in between reads the same rows again, and
    rewrites the same days to the same result. -#}
{% macro record_increment(increment) -%}
    {%- if increment.is_full_refresh or is_anything_read(increment) -%}
        {%- set since = recorded_since(increment) -%}
        {%- do assert_no_concurrent_build(increment, since, has_written=true) -%}
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
{% macro assert_no_concurrent_build(increment, since, has_written) -%}
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
        {{ raise_error(
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
        and not (increment.is_full_refresh and run_id in seen) -%}
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
        written_rows(rows),
    )) }}
{%- endmacro %}

{#- Whether an increment reads or changes anything. A table or code that an older lake does not
    know is worth a row, too. -#}
{% macro is_anything_read(increment) -%}
    {%- if is_anything_new(increment) -%}
        {{ return(true) }}
    {%- endif -%}
    {%- for mine in own_reads(increment) if mine.source_name in increment.reads -%}
        {%- set read = increment.reads[mine.source_name] -%}
        {%- if mine.code != increment.code
            or (read.table_uuid and (
                read.table_uuid != mine.table_uuid or read.table_since != mine.table_since
            )) -%}
            {{ return(true) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(increment.days | length > 0 or increment.has_undated) }}
{%- endmacro %}

{% macro recorded_read_point(relation, stream) -%}
    {{ return(recorded_read(relation, stream).to) }}
{%- endmacro %}

{#- How far a mart has read a stream, and of which table; `is_recorded` tells a mart that has
    read nothing from one that nobody knows of. -#}
{% macro recorded_read(relation, stream) -%}
    {%- if not queries_lake() -%}
        {{ return({
            "to": 9223372036854775807, "table_uuid": none, "table_since": 0,
            "is_recorded": true,
        }) }}
    {%- endif -%}
    {%- set rows = [] -%}
    {%- if are_increments_recorded() -%}
        {%- set rows = lake_rows(
            "select read_to, coalesce(table_uuid, 'none') as table_uuid,"
            ~ " coalesce(table_since, 0) as table_since from "
            ~ increment_tables().read_points
            ~ " where model_name = '" ~ relation.schema ~ "." ~ relation.identifier
            ~ "' and source_name = '" ~ stream ~ "'",
            [[9, "none", 0]],
        ) -%}
    {%- endif -%}
    {%- if not rows -%}
        {{ return({"to": 0, "table_uuid": none, "table_since": 0, "is_recorded": false}) }}
    {%- endif -%}
    {{ return({
        "to": rows[0][0] | int,
        "table_uuid": none if rows[0][1] == "none" else rows[0][1],
        "table_since": rows[0][2] | int,
        "is_recorded": true,
    }) }}
{%- endmacro %}
