{% macro parent_row(relation, stream, key, column=none, attributes=[]) -%}
    {%- set expressions = {} -%}
    {%- for name in attributes -%}
        {%- do expressions.update({
            name: attributes[name] if attributes is mapping else name
        }) -%}
    {%- endfor -%}
    {{ return({
        "relation": relation, "stream": stream, "key": key, "column": column or key,
        "attributes": expressions,
    }) }}
{%- endmacro %}

{#- The keys that this increment rewrites in a mart with one row per row of a captured table, its
    first parent: a query, or few keys as literals. From the other parents the mart takes
    attributes as of `instant` or, without it, current ones. New changes of those only show where
    to compare: later changes do not affect the mart, and a late change may affect any version. A
    parent without a stream is compared in full. Parents with nothing new are left out. -#}
{% macro changed_keys(increment, key, parents, instant=none) -%}
    {%- if not queries_lake() -%}
        {{ return("") }}
    {%- endif -%}
    {%- for parent in parents -%}
        {%- do increment.follows.append(node_of(parent.relation).unique_id) -%}
        {#- Two columns may refer to the same history: buyer and seller. -#}
        {%- if parent.get("stream") and parent.stream not in increment.reads -%}
            {%- do follow_history(increment, parent) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set own = changed_in(increment, parents[0]) -%}
    {%- do increment.update({"key": key, "own_changes": own}) -%}
    {%- set compared = [] -%}
    {%- for parent in parents[1:] if has_unread_changes(increment, parent) -%}
        {%- do compared.append(parent) -%}
    {%- endfor -%}
    {%- if not compared -%}
        {{ return(own) }}
    {%- endif -%}
    {%- set different = different_keys(increment, key, compared, instant) -%}
    {%- if writes_rows() and not increment.is_full_refresh
        and not has_unread_changes(increment, parents[0]) -%}
        {#- Most changes of a parent affect no row: without one, nothing is written. -#}
        {%- set most = 1000 -%}
        {%- set keys = [] -%}
        {%- for row in lake_rows(different ~ "\n    limit " ~ (most + 1), [[1]]) -%}
            {%- do keys.append(
                sql_literal(row[0]) if row[0] is string or row[0] is number else none
            ) -%}
        {%- endfor -%}
        {%- do increment.update({"is_unaffected": not keys}) -%}
        {%- if keys | length <= most and none not in keys -%}
            {{ return(keys | join(", ") or "null") }}
        {%- endif -%}
    {%- endif -%}
    {{ return(own ~ "\n    union\n    " ~ different) }}
{%- endmacro %}

{#- A query of the keys of a mart whose row has other attributes than its parents. -#}
{% macro different_keys(increment, key, parents, instant) -%}
    select existing.{{ key }}
    from {{ this }} as existing
    {%- for parent in parents %}
    {%- set is_dated = parent.get("stream") and instant %}
    {%- set name = "parent_" ~ loop.index %}
    left outer join (
        {%- set keys = changed_in(increment, parent) %}
        {{ dated_versions(parent, keys) if is_dated else newest_versions(parent, keys) }}
    ) as {{ name }}
        on
            existing.{{ parent.column }} = {{ name }}.{{ parent.key }}
            {%- if is_dated %}
            and {{ valid_at(name, "existing." ~ instant) }}
            {%- endif %}
    {%- endfor %}
    where
        {%- for parent in parents %}
        {%- set name = "parent_" ~ loop.index %}
        {{ "or " if not loop.first }}(
            {{ name ~ "." ~ parent.key ~ " is not null" if parent.get("stream") else "1 = 1" }}
            and (
                {%- for column in parent.attributes %}
                {{ "or " if not loop.first }}not coalesce(
                    existing.{{ column }} = {{ name }}.{{ column }},
                    existing.{{ column }} is null and {{ name }}.{{ column }} is null
                )
                {%- endfor %}
            )
        )
        {%- endfor %}
{%- endmacro %}

{#- Whether a parent, or any table that it is computed from, has new changes. -#}
{% macro has_unread_changes(increment, parent) -%}
    {%- set streams = [parent.stream] if parent.get("stream") else [] -%}
    {%- if not streams -%}
        {%- do streams_behind([node_of(parent.relation).unique_id], streams, []) -%}
    {%- endif -%}
    {%- for stream in streams -%}
        {%- set read = increment.reads.get(stream) -%}
        {%- if not read or read.after != read.to -%}
            {{ return(true) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(not streams) }}
{%- endmacro %}

{#- Records that an increment follows a history and its stream, up to the history's read point. A
    TRUNCATE has no key: it causes a full refresh. -#}
{% macro follow_history(increment, parent) -%}
    {%- do add_affected_days_of(increment, parent.relation) -%}
    {%- do read_with(increment, parent.relation, parent.stream) -%}
    {%- set truncates = truncates_of(*parent.stream.split(".")) -%}
    {%- if truncates and not increment.is_full_refresh and has_unread_changes(increment, parent) -%}
        {%- set found = lake_rows(
            "select count(*) as truncate_count from (" ~ truncates ~ ") as truncates where "
            ~ new_rows(increment, parent.stream),
            [[0]],
        )[0][0] -%}
        {%- do increment.update({"is_full_refresh": found | int > 0}) -%}
    {%- endif -%}
{%- endmacro %}

{#- The keys of a captured table with new changes. -#}
{% macro changed_in(increment, parent) -%}
    {%- if parent.get("stream") -%}
    select {{ parent.key }}
    from {{ changes_of(parent) }} as changes
    where
        {{ new_rows(increment, parent.stream) }}
        and {{ parent.key }} is not null
    {%- endif -%}
{%- endmacro %}

{#- The staging model of a history: its parent with the stream upstream. Marts query it for new
    changes only. -#}
{% macro changes_of(parent) -%}
    {%- for node_id in node_of(parent.relation).depends_on.nodes if node_id in graph.nodes -%}
        {%- set streams = [] -%}
        {%- do streams_behind([node_id], streams, []) -%}
        {%- if parent.stream in streams -%}
            {%- set node = graph.nodes[node_id] -%}
            {{ return(queryable_model(node.package_name, node.name)) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        this.identifier ~ " follows " ~ parent.relation ~ " by the stream " ~ parent.stream
        ~ ", which is not upstream of it"
    ) }}
{%- endmacro %}

{#- Reads a stream up to the read point of its history. -#}
{% macro read_with(increment, history, stream) -%}
    {%- set name = history.schema ~ "." ~ history.identifier -%}
    {%- for theirs in increment.recorded.reads
        if theirs.model_name == name and theirs.source_name == stream -%}
        {{ return(read_of_stream(increment, stream, until=dict(theirs, to=theirs.read_to))) }}
    {%- endfor -%}
    {%- if queries_lake() and writes_rows() and not is_partial_build()
        and "deferred" not in increment.code and rendered_branch() is none -%}
        {{ raise_error(
            name ~ " has no read point in " ~ increment_tables().read_points,
            refresh_command(node_of(history).unique_id),
        ) }}
    {%- endif -%}
    {{ return(read_of_stream(increment, stream)) }}
{%- endmacro %}
