{#- The two state tables of increments, both small. New columns go at the end: an existing lake
    gets them at its next run. -#}
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

{#- Their columns and types. -#}
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
            "has_truncates": "boolean",
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

{#- `dbt compile` and `dbt docs generate` create no tables or columns: before the first build
    there are none. -#}
{% macro are_increments_recorded() -%}
    {%- if rendered_branch() is not none -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- if "are increments recorded" not in memory -%}
        {%- set table = increment_tables().read_points -%}
        {%- do memory.update({"are increments recorded": (
            adapter.check_schema_exists(target.database, table.schema)
            and "has_truncates" in (
                adapter.get_columns_in_relation(table) | map(attribute="name") | list
            )
        )}) -%}
    {%- endif -%}
    {{ return(memory["are increments recorded"]) }}
{%- endmacro %}

{#- Records the affected days before any row changes (write-ahead), so that they are known if the
    run fails. It appends to the records of other runs and then checks whether one of them has
    completed: of two concurrent runs, at least one sees the other. Facts that no other fact reads
    record their intent, too: nothing else shows what a failed concurrent run wrote. -#}
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
            increment, recorded_since(increment, with_intents=false), has_written=false
        ) -%}
    {%- endif -%}
{%- endmacro %}

{#- A statement that records the affected days of an increment. It appends rows and compacts them
    at every twentieth increment, replacing only rows that this run has read. -#}
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

{#- One row of `touched_days`. -#}
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

{#- The recorded days to keep: the newest row of each day, and all rows of unfinished runs. -#}
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

{#- At the end of a run: marks failed increments as ended, so that no later run waits for them. -#}
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

{#- Records the read points after the rows are written: a run that fails in between is repeated by
    the next one, with the same result. -#}
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

{#- The model's newest committed increment, and the runs that recorded an intent since this run
    started. -#}
{% macro recorded_since(increment, with_intents=true) -%}
    {%- set tables = increment_tables() -%}
    {%- set newest = [0] -%}
    {%- set others = [] -%}
    {#- The rows are few: Spark takes longer to aggregate than to return them. -#}
    {%- for row in run_query(
        "select 'read' as kind, increment_id from " ~ tables.read_points
        ~ " where model_name = '" ~ increment.model_name ~ "'"
        ~ (
            " union all select run_id, increment_id from " ~ tables.touched_days
            ~ " where model_name = '" ~ increment.model_name ~ "' and increment_id > "
            ~ increment.committed ~ " and run_id <> '" ~ invocation_id ~ "'"
            if with_intents
        )
    ).rows -%}
        {%- if row[0] == "read" -%}
            {%- do newest.append(row[1] | int) -%}
        {%- elif row[0] not in others -%}
            {%- do others.append(row[0]) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return({"newest": newest | max, "others": others}) }}
{%- endmacro %}

{#- Raises an error when a concurrent run committed an increment of the same model. If this run
    has already written rows, either may have replaced rows of the other: it first resets the read
    points, so that the next run reads the same commits again, rewrites the days of both and
    corrects the rows. -#}
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

{#- Runs that may still be writing or failed while writing, with the time they were first seen and
    the read points at that time: they may overwrite newer rows with older ones. Their days are
    rewritten by each run until they end, for one day at most. A full refresh need not wait for
    runs that it has seen. -#}
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

{#- By source, the model's read point when this increment began. -#}
{% macro read_before(increment) -%}
    {%- set before = {} -%}
    {%- for source_name, read in increment.reads.items() -%}
        {%- do before.update({source_name: read.after}) -%}
    {%- endfor -%}
    {{ return(before) }}
{%- endmacro %}

{#- The unfinished runs that the last increment recorded. -#}
{% macro unfinished_runs(increment) -%}
    {%- set mine = own_reads(increment) -%}
    {{ return(fromjson(mine[0].unfinished) if mine else {}) }}
{%- endmacro %}

{#- A statement that records the read points of an increment. -#}
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
            "has_truncates": (
                "cast(" ~ increment.get("has_truncates", "null") | lower ~ " as boolean)"
            ),
        }) -%}
    {%- endfor -%}
    {%- set table = increment_tables().read_points -%}
    {{ in_own_transaction(table, replace_rows(
        table,
        "model_name = '" ~ increment.model_name ~ "'",
        written_rows(rows),
    )) }}
{%- endmacro %}

{#- Whether an increment reads or changes anything. A table UUID or code checksum that is not
    recorded yet counts as a change, too. -#}
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

{#- A mart's read point of a stream, with the table's UUID; `is_recorded` is false for a mart
    without recorded state. -#}
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
