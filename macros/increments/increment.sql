{% macro begin_increment(time_column=none, settings={}) -%}
    {%- set increment = {
        "model_name": this.schema ~ "." ~ this.identifier,
        "time_column": time_column,
        "settings": tojson(settings, sort_keys=true),
        "is_full_refresh": true,
        "has_undated": false,
        "days": [],
        "onwards_from": none,
        "repartitioned": none,
        "id": 1,
        "committed": 0,
        "code": "{}",
        "unfinished": {},
        "is_intent_recorded": false,
        "reads": {},
        "follows": [],
        "recorded": {"reads": [], "days": []},
    } -%}
    {%- if model.resource_type == "unit_test"
        and "is_incremental" in ((model.overrides or {}).get("macros") or {}) -%}
        {{ exceptions.raise_compiler_error(
            "a unit test has no lake to query, which an increment needs: leave out the override of "
            ~ "is_incremental, and see tests/python/spark/test_increments.py"
        ) }}
    {%- endif -%}
    {%- if queries_lake() -%}
        {%- do increment.update({"recorded": recorded_increments()}) -%}
        {%- set ids = increment_ids(increment, increment.model_name) -%}
        {%- do increment.update({
            "id": ids.newest + 1,
            "committed": ids.committed,
            "is_full_refresh": not is_incremental(),
            "code": tojson(model_code(), sort_keys=true),
            "unfinished": unfinished_runs(increment),
        }) -%}
        {%- if writes_rows() and not is_partial_build() -%}
            {%- do assert_increment_fits(increment) -%}
        {%- endif -%}
        {%- if not increment.is_full_refresh -%}
            {%- do add_recorded_days(
                increment, increment.model_name, ids.committed, increment.unfinished
            ) -%}
        {%- endif -%}
        {%- do invocation_memory().update({
            "increment of " ~ increment.model_name: increment
        }) -%}
    {%- endif -%}
    {{ return(increment) }}
{%- endmacro %}

{#- The recorded state of this model and of its parents. As text, because adapters differ in the
    type they give a column of nulls. -#}
{% macro recorded_increments() -%}
    {%- set recorded = {"reads": [], "days": []} -%}
    {%- if not are_increments_recorded() -%}
        {{ return(recorded) }}
    {%- endif -%}
    {%- set tables = increment_tables() -%}
    {%- set names = [this.schema ~ "." ~ this.identifier] -%}
    {%- for parent in model.depends_on.nodes if parent in graph.nodes -%}
        {%- do names.append(
            graph.nodes[parent].schema ~ "." ~ graph.nodes[parent].alias
        ) -%}
    {%- endfor -%}
    {%- set wanted = "model_name in ('" ~ names | join("', '") ~ "')" -%}
    {%- set rows = lake_rows(
        "select 'read' as kind, model_name, source_name as name, read_to, increment_id,"
        ~ " settings, coalesce(table_uuid, 'none') as table_uuid,"
        ~ " coalesce(code, 'none') as code, coalesce(unfinished, '{}') as unfinished,"
        ~ " coalesce(table_since, 0) as table_since,"
        ~ " case when has_truncates then 1 when has_truncates is null then 2 else 0 end"
        ~ " as has_truncates"
        ~ " from " ~ tables.read_points ~ " where " ~ wanted
        ~ " union all"
        ~ " select 'day', model_name, coalesce(cast(touched_date as varchar(10)), 'all'),"
        ~ " case when is_onwards then 1 when is_onwards is null then 2 else 0 end,"
        ~ " increment_id, coalesce(run_id, 'none'), 'none', 'none', '{}', 0, 0"
        ~ " from " ~ tables.touched_days ~ " where " ~ wanted,
        sample_increments(names),
    ) -%}
    {%- for row in rows -%}
        {%- if row[0] == "read" -%}
            {%- do recorded.reads.append({
                "model_name": row[1],
                "source_name": row[2],
                "read_to": row[3] | int,
                "increment_id": row[4] | int,
                "settings": row[5],
                "table_uuid": none if row[6] == "none" else row[6],
                "code": none if row[7] == "none" else row[7],
                "unfinished": row[8],
                "table_since": row[9] | int,
                "has_truncates": row[10] | int > 0,
            }) -%}
        {%- else -%}
            {%- do recorded.days.append({
                "model_name": row[1],
                "day": none if row[2] == "all" else calendar_day(row[2]),
                "is_onwards": row[3] | int == 1,
                "is_end": row[3] | int == 2,
                "increment_id": row[4] | int,
                "run_id": row[5],
            }) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(recorded) }}
{%- endmacro %}

{#- What `recorded_increments` returns without a lake: as if each model had completed an increment
    that affected two days, the second with all days after it. -#}
{% macro sample_increments(names) -%}
    {%- set rows = [] -%}
    {%- for name in names -%}
        {%- do rows.append(
            ["read", name, "made.up", 9, 2, "{}", "none", "none", "{}", 0, 2]
        ) -%}
        {%- if name != names[0] -%}
            {%- do rows.append(
                ["day", name, "2026-01-02", 0, 2, "none", "none", "none", "{}", 0, 0]
            ) -%}
            {%- do rows.append(
                ["day", name, "2026-01-05", 1, 2, "none", "none", "none", "{}", 0, 0]
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(rows) }}
{%- endmacro %}

{#- Parses a day as a Python date. -#}
{% macro calendar_day(text) -%}
    {{ return(modules.datetime.date.fromisoformat((text | string)[:10])) }}
{%- endmacro %}

{#- The ids of a model's last committed and last started increments. -#}
{% macro increment_ids(increment, model_name) -%}
    {%- set committed = [0] -%}
    {%- set begun = [0] -%}
    {%- for read in increment.recorded.reads if read.model_name == model_name -%}
        {%- do committed.append(read.increment_id) -%}
    {%- endfor -%}
    {%- for day in increment.recorded.days if day.model_name == model_name -%}
        {%- do begun.append(day.increment_id) -%}
    {%- endfor -%}
    {{ return({
        "committed": committed | max, "newest": (committed + begun) | max
    }) }}
{%- endmacro %}

{#- The recorded state of the model itself, one row per stream and parent. -#}
{% macro own_reads(increment) -%}
    {{ return(
        increment.recorded.reads
        | selectattr("model_name", "equalto", increment.model_name) | list
    ) }}
{%- endmacro %}

{#- Builds a model. While it was rendered, an incremental model found what it had read, checked
    that its code and settings are unchanged, and collected the affected days or keys. Here it
    records its intent, replaces the rows and records how far it has read, each in a transaction
    of its own. Any other model is built by the adapter. -#}
{% macro build_model(write_rows) -%}
    {%- set increment = current_increment() -%}
    {%- do assert_strategy_is_of_increment(increment) -%}
    {%- if increment -%}
        {%- do assert_parents_are_followed(increment) -%}
    {%- endif -%}
    {#- A build with --empty or --sample records no read point; the next run reports that. -#}
    {%- if not increment or is_partial_build() -%}
        {{ return(write_rows()) }}
    {%- endif -%}
    {%- do end_transaction() -%}
    {%- do record_intent(increment) -%}
    {%- set relations = write_rows() -%}
    {%- do record_increment(increment) -%}
    {{ return(relations) }}
{%- endmacro %}

{% materialization incremental, adapter="spark", supported_languages=["sql", "python"] %}
    {{ return(build_model(write_increment)) }}
{% endmaterialization %}

{% materialization table, adapter="spark", supported_languages=["sql", "python"] %}
    {{ return(build_model(dbt.materialization_table_spark)) }}
{% endmaterialization %}

{% materialization incremental, adapter="redshift" %}
    {{ return(build_model(dbt.materialization_incremental_default)) }}
{% endmaterialization %}

{% materialization table, adapter="redshift" %}
    {{ return(build_model(dbt.materialization_table_redshift)) }}
{% endmaterialization %}

{#- The increment that the current model began while it was rendered, or none. -#}
{% macro current_increment() -%}
    {{ return(invocation_memory().get(
        "increment of " ~ this.schema ~ "." ~ this.identifier
    )) }}
{%- endmacro %}

{#- Writes the rows of an incremental model on Spark. A full refresh is built as a table: the
    adapter would drop the old table before the new one exists. An increment is a single statement
    that contains the model's query, so Spark analyses it once; the adapter would create a view
    first to compare the columns, which the code checksum makes unnecessary. -#}
{% macro write_increment() -%}
    {%- set existing = load_relation(this) -%}
    {%- set is_there = existing and existing.is_iceberg -%}
    {%- if is_there and should_full_refresh() or current_increment() and not is_there -%}
        {{ return(dbt.materialization_table_spark()) }}
    {%- elif not current_increment() -%}
        {{ return(dbt.materialization_incremental_spark()) }}
    {%- endif -%}
    {{ run_hooks(pre_hooks) }}
    {%- set described = described_table(this) -%}
    {%- set columns = described.columns | list -%}
    {%- do assert_same_columns(columns) -%}
    {%- call statement("main") -%}
        {{ increment_statement("(\n" ~ sql ~ "\n)", columns) }}
    {%- endcall -%}
    {%- do apply_grants(this, config.get("grants"), should_revoke(existing, false)) -%}
    {%- do persist_changed_docs(this, model, described) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({"relations": [this]}) }}
{%- endmacro %}

{#- With `accept_changed_code`, raises an error where the query's columns are not the table's. -#}
{% macro assert_same_columns(columns) -%}
    {%- if var("accept_changed_code")
        and get_columns_in_query(sql) | sort != columns | sort -%}
        {{ raise_error(this.identifier ~ " has other columns than its query", refresh_command()) }}
    {%- endif -%}
{%- endmacro %}

{#- dbt looks up the macro of a strategy by its name; dbt-spark does not. -#}
{% macro get_incremental_rewrite_sql(arg_dict) -%}
    {{ increment_statement(
        arg_dict["temp_relation"],
        adapter.get_columns_in_relation(this) | map(attribute="name") | list,
    ) }}
{%- endmacro %}

{% macro get_incremental_rewrite_keys_sql(arg_dict) -%}
    {{ get_incremental_rewrite_sql(arg_dict) }}
{%- endmacro %}

{#- A statement that replaces the rows that an increment changes with those of a relation or
    query. `rewrite` replaces all rows of the affected days; a day without new rows is deleted.
    `rewrite_keys` takes, for each changed row of a history, the previously current version with
    its end and the versions after it, or all versions of the keys to rebuild. A mart of captured
    tables takes the rows of its `changed_keys`. -#}
{% macro increment_statement(rows, columns) -%}
    {%- set increment = current_increment() -%}
    {%- set condition = (
        in_affected_days(increment, increment.time_column)
        if config.get("incremental_strategy") == "rewrite"
        else "1 = 1" if increment.is_full_refresh
        else "" if is_anything_new(increment) and not increment.is_unaffected
        else "1 = 0"
    ) -%}
    {%- if condition == "1 = 0" -%}
        select 'nothing is new' as outcome
    {%- elif condition -%}
        {{ replace_rows(
            this, condition, "select " ~ columns | join(", ") ~ " from " ~ rows ~ " as new_rows"
        ) }}
    {%- elif increment.own_changes -%}
        {{ replace_changed_rows(
            this, rows, columns, increment.key,
            "select distinct " ~ increment.key ~ " from (" ~ increment.own_changes ~ ") as own"
        ) }}
    {%- else -%}
        {{ replace_versions(this, rows, columns, increment.key, increment.keys_to_rebuild) }}
    {%- endif -%}
{%- endmacro %}

{#- Whether a stream or a parent has unread commits. -#}
{% macro is_anything_new(increment) -%}
    {%- for read in increment.reads.values() if read.after != read.to -%}
        {{ return(true) }}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}

{#- Raises an error for a model with a strategy of this project that begins no increment, or the
    other way round: these strategies write only what an increment collected. A model with neither
    is built as dbt does. -#}
{% macro assert_strategy_is_of_increment(increment) -%}
    {%- set strategy = model.config.incremental_strategy or "the adapter's own" -%}
    {%- if model.config.materialized != "incremental" -%}
        {{ return("") }}
    {%- elif strategy in strategies_of_increments() and not increment -%}
        {{ exceptions.raise_compiler_error(
            this.identifier ~ " has the incremental_strategy " ~ strategy ~ " and begins no "
            ~ "increment: begin it with `begin_increment`, or leave the strategy to the adapter"
        ) }}
    {%- elif increment and strategy not in strategies_of_increments() -%}
        {{ exceptions.raise_compiler_error(
            this.identifier ~ " begins an increment, and its incremental_strategy is " ~ strategy
            ~ ": set it to " ~ strategies_of_increments() | join(" or ")
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- The incremental strategies of this project. -#}
{% macro strategies_of_increments() -%}
    {{ return(["rewrite", "rewrite_keys"]) }}
{%- endmacro %}
