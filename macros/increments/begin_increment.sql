{% macro begin_increment(time_column=none, settings={}) -%}
    {%- set increment = {
        "model_name": this.schema ~ "." ~ this.identifier,
        "time_column": time_column,
        "settings": tojson(settings, sort_keys=true),
        "is_everything": true,
        "has_timeless": false,
        "days": [],
        "onwards_from": none,
        "moved": none,
        "id": 1,
        "committed": 0,
        "code": "{}",
        "unfinished": {},
        "is_announced": false,
        "reads": {},
        "follows": [],
        "recorded": {"reads": [], "days": []},
    } -%}
    {%- if model.resource_type == "unit_test"
        and "is_incremental" in ((model.overrides or {}).get("macros") or {}) -%}
        {{ exceptions.raise_compiler_error(
            "a unit test asks no lake, which an increment does: leave out the override of "
            ~ "is_incremental, and see tests/python/spark/test_increments.py"
        ) }}
    {%- endif -%}
    {%- if asks_the_lake() -%}
        {%- do increment.update({"recorded": recorded_increments()}) -%}
        {%- set ids = increment_ids(increment, increment.model_name) -%}
        {%- do increment.update({
            "id": ids.newest + 1,
            "committed": ids.committed,
            "is_everything": not is_incremental(),
            "code": tojson(model_code(), sort_keys=true),
            "unfinished": unfinished_runs(increment),
        }) -%}
        {%- if writes_rows() and not is_partial_build() -%}
            {%- do assert_increment_fits(increment) -%}
        {%- endif -%}
        {%- if not increment.is_everything -%}
            {%- do touch_days(
                increment, increment.model_name, ids.committed, increment.unfinished
            ) -%}
        {%- endif -%}
        {%- do invocation_memory().update({
            "increment of " ~ increment.model_name: increment
        }) -%}
    {%- endif -%}
    {{ return(increment) }}
{%- endmacro %}

{#- What is recorded of this model and of those it reads. Texts, because what the adapter
    makes of a column of nulls differs. -#}
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
        ~ " coalesce(table_since, 0) as table_since"
        ~ " from " ~ tables.read_points ~ " where " ~ wanted
        ~ " union all"
        ~ " select 'day', model_name, coalesce(cast(touched_date as varchar(10)), 'all'),"
        ~ " case when is_onwards then 1 when is_onwards is null then 2 else 0 end,"
        ~ " increment_id, coalesce(run_id, 'none'), 'none', 'none', '{}', 0"
        ~ " from " ~ tables.touched_days ~ " where " ~ wanted,
        made_up_increments(names),
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

{#- What `recorded_increments` reads when there is no lake. As if each model had ended an increment
    that touched two days, the second with all after it. -#}
{% macro made_up_increments(names) -%}
    {%- set rows = [] -%}
    {%- for name in names -%}
        {%- do rows.append(
            ["read", name, "made.up", 9, 2, "{}", "none", "none", "{}", 0]
        ) -%}
        {%- if name != names[0] -%}
            {%- do rows.append(
                ["day", name, "2026-01-02", 0, 2, "none", "none", "none", "{}", 0]
            ) -%}
            {%- do rows.append(
                ["day", name, "2026-01-05", 1, 2, "none", "none", "none", "{}", 0]
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(rows) }}
{%- endmacro %}

{#- A day as Python's date. -#}
{% macro calendar_day(text) -%}
    {{ return(modules.datetime.date.fromisoformat((text | string)[:10])) }}
{%- endmacro %}

{#- The last increment of a model that was finished, and the last that was begun. -#}
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

{#- What is recorded of the model itself, a row for each stream and parent. -#}
{% macro own_reads(increment) -%}
    {{ return(
        increment.recorded.reads
        | selectattr("model_name", "equalto", increment.model_name) | list
    ) }}
{%- endmacro %}
