{#- One row per node of this invocation; rows older than `run_history_days` are deleted in the
    same commit. Hooks and exposures in dbt's results are skipped: they are neither built nor
    tested. -#}
{% macro record_runs(results) -%}
    {%- if execute and target.name != "lint" -%}
        {%- set recorded = ["model", "seed", "snapshot", "test", "unit_test"] -%}
        {%- set rows = [] -%}
        {%- for result in results if result.node.resource_type | string in recorded -%}
            {%- do rows.append(run_row(result)) -%}
        {%- endfor -%}
        {%- if rows -%}
            {%- set table = runs_table() -%}
            {%- set oldest = run_started_at - modules.datetime.timedelta(
                days=var("run_history_days")
            ) -%}
            {%- do run_query(in_own_transaction(table, replace_rows(
                table,
                "run_date < cast('" ~ oldest.strftime("%Y-%m-%d") ~ "' as date)",
                written_rows(rows),
            ))) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- `state.runs` itself: with `--empty` dbt renders a source as a query without rows. -#}
{% macro runs_table() -%}
    {%- set table = source("dbt", "runs") -%}
    {{ return(api.Relation.create(
        database=table.database, schema=table.schema, identifier=table.identifier
    )) }}
{%- endmacro %}

{#- Creates `state.runs` if it does not exist. -#}
{% macro create_runs_table() -%}
    {%- do run_query(create_small_table(runs_table(), {
        "invocation_id": "varchar(64)",
        "command": "varchar(32)",
        "node_id": "varchar(512)",
        "node_name": "varchar(256)",
        "node_type": "varchar(32)",
        "run_status": "varchar(32)",
        "run_seconds": "decimal(18,3)",
        "row_count": "bigint",
        "message": "varchar(512)",
        "started_at": "timestamp",
        "run_date": "date",
    }, "run_date")) -%}
{%- endmacro %}

{#- The result of a node as literals by column of `state.runs`. `row_count` is what the engine
    reports as written, which Spark does not; for a test, the failures. -#}
{% macro run_row(result) -%}
    {%- set written = (result.adapter_response or {}).get("rows_affected") -%}
    {%- set counted = written if result.failures is none else result.failures -%}
    {%- set begun = [run_started_at] -%}
    {%- for timing in result.timing if timing.name == "execute" and timing.started_at -%}
        {%- do begun.append(timing.started_at) -%}
    {%- endfor -%}
    {%- set started_at = begun | last -%}
    {{ return({
        "invocation_id": sql_literal(invocation_id),
        "command": sql_literal(flags.WHICH),
        "node_id": sql_literal(result.node.unique_id[:512]),
        "node_name": sql_literal(result.node.name[:256]),
        "node_type": sql_literal(result.node.resource_type | string),
        "run_status": sql_literal(result.status | string),
        "run_seconds": (
            "cast(" ~ "%.3f" | format(result.execution_time) ~ " as decimal(18, 3))"
        ),
        "row_count": "cast(" ~ (
            counted if counted is not none and counted | int(-1) >= 0 else "null"
        ) ~ " as bigint)",
        "message": "cast(" ~ (
            sql_literal(first_line(result.message)) if result.message else "null"
        ) ~ " as varchar(512))",
        "started_at": (
            "cast('" ~ started_at.strftime("%Y-%m-%d %H:%M:%S.%f") ~ "' as timestamp)"
        ),
        "run_date": "cast('" ~ started_at.strftime("%Y-%m-%d") ~ "' as date)",
    }) }}
{%- endmacro %}

{#- A message of dbt as one line of at most 500 characters. dbt's errors begin with a line for the
    location; the message follows in the next one. -#}
{% macro first_line(message) -%}
    {%- set lines = message | string | trim | replace("\r", "") -%}
    {%- set lines = lines.split("\n") -%}
    {%- set is_place = " Error in " in lines[0] and lines | length > 1 -%}
    {{ return(
        (lines[0] ~ (": " ~ lines[1] | trim if is_place else ""))[:500]
    ) }}
{%- endmacro %}
