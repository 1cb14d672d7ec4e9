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
        "reads": {},
        "recorded": {"reads": [], "days": []},
    } -%}
    {%- if asks_the_lake() -%}
        {%- if flags.EMPTY and is_incremental() -%}
            {{ exceptions.raise_compiler_error(
                "--empty would leave the touched days of " ~ increment.model_name
                ~ " without rows: leave the flag out, or build into another schema"
            ) }}
        {%- endif -%}
        {%- do increment.update({"recorded": recorded_increments()}) -%}
        {%- set ids = increment_ids(increment, increment.model_name) -%}
        {%- do increment.update({
            "id": ids.newest + 1,
            "committed": ids.committed,
            "is_everything": not is_incremental(),
        }) -%}
        {%- if not increment.is_everything -%}
            {%- if writes_rows() -%}
                {%- do assert_increment_fits(increment) -%}
            {%- endif -%}
            {%- do touch_days(increment, increment.model_name, ids.committed) -%}
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
        "select 'read' as kind, model_name, source_name as name, read_to, increment_id, settings"
        ~ " from " ~ tables.read_points ~ " where " ~ wanted
        ~ " union all"
        ~ " select 'day', model_name, coalesce(cast(touched_date as varchar(10)), 'all'),"
        ~ " case when is_onwards then 1 else 0 end, increment_id, 'none'"
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
            }) -%}
        {%- else -%}
            {%- do recorded.days.append({
                "model_name": row[1],
                "day": none if row[2] == "all" else calendar_day(row[2]),
                "is_onwards": row[3] | int == 1,
                "increment_id": row[4] | int,
            }) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(recorded) }}
{%- endmacro %}

{#- As if each model had ended an increment that touched two days, the second with all after
    it. -#}
{% macro made_up_increments(names) -%}
    {%- set rows = [] -%}
    {%- for name in names -%}
        {%- do rows.append(["read", name, "made.up", 9, 2, "{}"]) -%}
        {%- if name != names[0] -%}
            {%- do rows.append(["day", name, "2026-01-02", 0, 2, "none"]) -%}
            {%- do rows.append(["day", name, "2026-01-05", 1, 2, "none"]) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(rows) }}
{%- endmacro %}

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

{% macro assert_increment_fits(increment) -%}
    {%- set name = increment.model_name -%}
    {%- set fix = "run `dbt build --full-refresh --select " ~ this.identifier ~ "`" -%}
    {%- set mine = increment.recorded.reads
        | selectattr("model_name", "equalto", name) | list -%}
    {%- if not mine -%}
        {{ exceptions.raise_compiler_error(
            name ~ " has no row in " ~ increment_tables().read_points
            ~ ": nobody knows what it has read; " ~ fix
        ) }}
    {%- endif -%}
    {%- if mine[0].settings != increment.settings -%}
        {{ exceptions.raise_compiler_error(
            name ~ " was built with " ~ mine[0].settings ~ " and would now go on with "
            ~ increment.settings ~ ": old and new rows would mix; " ~ fix
        ) }}
    {%- endif -%}
{%- endmacro %}
