{% macro new_rows(increment, stream, until=none) -%}
    {%- set read = read_of_stream(increment, stream, until) -%}
    {%- if increment.is_full_refresh -%}
        coalesce(_commit_id, 0) <= {{ read.to }}
    {%- else -%}
        _commit_id > {{ read.after }} and _commit_id <= {{ read.to }}
    {%- endif -%}
{%- endmacro %}

{#- The range of commits of a stream that this increment reads; recorded when it completes. The
    table's UUID is read first, so that a table recreated in between is found by the next
    increment. -#}
{% macro read_of_stream(increment, stream, until=none) -%}
    {%- if stream not in increment.reads -%}
        {%- set table = bronze_identity(stream) if queries_lake() else {} -%}
        {%- if until is none -%}
            {%- set until = dict(table, to=read_point(stream)) -%}
        {%- endif -%}
        {%- set read = {
            "after": confirmed_read_to(increment, stream),
            "to": until.to,
            "table_uuid": until.table_uuid,
            "table_since": until.table_since,
        } -%}
        {%- if queries_lake() and writes_rows() and not increment.is_full_refresh -%}
            {%- do assert_same_table(increment, stream, read) -%}
        {%- endif -%}
        {%- do increment.reads.update({stream: read}) -%}
    {%- endif -%}
    {{ return(increment.reads[stream]) }}
{%- endmacro %}

{#- The lowest read point of a stream, allowing for rows that unfinished runs may have replaced. -#}
{% macro confirmed_read_to(increment, stream) -%}
    {%- set ends = [read_to(increment, stream)] -%}
    {%- for run in increment.unfinished.values() if stream in run.after -%}
        {%- do ends.append(run.after[stream]) -%}
    {%- endfor -%}
    {{ return(ends | min) }}
{%- endmacro %}

{#- The model's read point of a stream or a parent before this increment. -#}
{% macro read_to(increment, source_name) -%}
    {%- for read in increment.recorded.reads
        if read.model_name == increment.model_name and read.source_name == source_name -%}
        {{ return(read.read_to) }}
    {%- endfor -%}
    {{ return(0) }}
{%- endmacro %}

{#- Finds the read points of all increments before models run: threads that begin at the same time
    would each query them. -#}
{% macro find_read_points() -%}
    {%- if execute and target.name != "lint" and writes_rows() -%}
        {%- set increments, streams = [], [] -%}
        {%- for node_id in selected_resources if node_id in graph.nodes
            and graph.nodes[node_id].config.incremental_strategy
                in strategies_of_increments() -%}
            {%- do increments.append(node_id) -%}
        {%- endfor -%}
        {%- do streams_behind(increments, streams, []) -%}
        {%- for stream in streams -%}
            {%- do bronze_identity(stream) -%}
            {%- do read_point(stream) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- The newest commit of a stream that this invocation reads. The first call queries all streams
    upstream of the selected nodes in one statement, so that they are consistent with each other.
    If two threads query at the same time, both use the first result. -#}
{% macro read_point(stream) -%}
    {%- if not queries_lake() -%}
        {{ return(9223372036854775807) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- set known = memory.get("read points", {}) -%}
    {%- if stream not in known -%}
        {%- set asked = [stream] -%}
        {%- if not known -%}
            {%- do streams_behind(selected_resources, asked, []) -%}
        {%- endif -%}
        {%- set queries, sample_rows, newest = [], [], {} -%}
        {%- for name in asked | unique | sort -%}
            {%- do queries.append(
                "select '" ~ name ~ "' as stream, max(_commit_id) as newest from "
                ~ bronze_table(name)
            ) -%}
            {%- do sample_rows.append([name, 9]) -%}
        {%- endfor -%}
        {%- for row in lake_rows(queries | join(" union all "), sample_rows) -%}
            {%- do newest.update({row[0]: (row[1] or 0) | int}) -%}
        {%- endfor -%}
        {%- do memory.setdefault("read points", newest).setdefault(
            stream, newest[stream]
        ) -%}
    {%- endif -%}
    {{ return(memory["read points"][stream]) }}
{%- endmacro %}

{#- Adds the streams upstream of the given nodes that have a table. -#}
{% macro streams_behind(node_ids, streams, seen) -%}
    {%- for node_id in node_ids if node_id not in seen -%}
        {%- do seen.append(node_id) -%}
        {%- if node_id in graph.sources -%}
            {%- set source = graph.sources[node_id] -%}
            {%- if source.config.meta.get("ingest") and is_in_lake(source) -%}
                {%- do streams.append(source.source_name ~ "." ~ source.name) -%}
            {%- endif -%}
        {%- elif node_id in graph.nodes -%}
            {%- do streams_behind(graph.nodes[node_id].depends_on.nodes, streams, seen) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- The UUID of a bronze table and the time since which its history is continuous. Ingest logs
    both when it creates or first opens a table, or finds it rolled back. None if the commit log
    has no such entry. -#}
{% macro bronze_identity(stream) -%}
    {%- set memory = invocation_memory() -%}
    {%- if "bronze identities" not in memory -%}
        {%- set identities = {} -%}
        {%- set log = bronze_table("ingest.ingest_commits") -%}
        {%- if has_column(log, "table_uuid") -%}
            {%- set rows = lake_rows(
                "select table_name, table_uuid, "
                ~ epoch_micros("cast(committed_at as timestamp)") ~ " as since"
                ~ " from (select table_name, table_uuid, committed_at,"
                ~ " row_number() over (partition by table_name"
                ~ " order by committed_at desc, table_uuid desc) as recency"
                ~ " from " ~ log ~ " where kind = 'table') as tables where recency = 1",
                [],
            ) -%}
            {%- for row in rows -%}
                {%- do identities.update({
                    row[0]: {"table_uuid": row[1], "table_since": row[2] | int}
                }) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do memory.setdefault("bronze identities", identities) -%}
    {%- endif -%}
    {%- set table = bronze_table(stream) -%}
    {{ return(memory["bronze identities"].get(
        table.schema ~ "." ~ table.identifier, {"table_uuid": none, "table_since": 0}
    )) }}
{%- endmacro %}

{#- The bronze table of a stream. -#}
{% macro bronze_table(stream) -%}
    {%- for source in graph.sources.values() -%}
        {%- if source.source_name ~ "." ~ source.name == stream -%}
            {{ return(
                api.Relation.create(schema=source.schema, identifier=source.identifier)
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "no dbt source is named " ~ stream ~ ": name it like pagila.sales"
    ) }}
{%- endmacro %}

{#- What a query sent while rendering can read for a model: its relation or, for an ephemeral
    model, which has no relation, a subquery of its SQL. -#}
{% macro queryable(relation) -%}
    {%- if relation is string or not (relation.is_cte | default(false)) -%}
        {{ return(relation) }}
    {%- endif -%}
    {{ return(queryable_model(relation.identifier.removeprefix("__dbt__cte__"))) }}
{%- endmacro %}

{#- The same by the arguments of `ref`: an optional package, a name and a version. Replaces `ref`
    in the SQL of ephemeral models. -#}
{% macro queryable_model(name, name_in_package=none, version=none, v=none) -%}
    {%- set package = name if name_in_package else none -%}
    {%- set name = name_in_package or name -%}
    {%- set version = version or v -%}
    {%- for node in graph.nodes.values()
        if node.name == name and node.resource_type in ["model", "seed"]
        and package in [none, node.package_name]
        and (
            version | string == node.version | string if version is not none
            else node.version | default(none) == node.latest_version | default(none)
        ) -%}
        {%- if node.config.materialized != "ephemeral" -%}
            {{ return(api.Relation.create(
                database=node.database, schema=node.schema, identifier=node.alias
            )) }}
        {%- endif -%}
        {{ return(
            "(" ~ render(
                modules.re.sub("\\bref\\(", "queryable_model(", node.raw_code)
            ) ~ ")"
        ) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "no model or seed is named " ~ name ~ ", which an ephemeral model reads"
    ) }}
{%- endmacro %}
