{#- Raises an error, with the command that fixes it, for an increment that would mix rows of
    different code or settings, or read parents that were built from other code. A full refresh
    needs only the parents to be up to date. -#}
{% macro assert_increment_fits(increment) -%}
    {%- set name = increment.model_name -%}
    {%- if not increment.is_full_refresh -%}
        {%- set mine = own_reads(increment) -%}
        {%- if not mine -%}
            {{ raise_error(
                name ~ " has no read point in " ~ increment_tables().read_points,
                refresh_command(),
            ) }}
        {%- endif -%}
        {%- set settings = changed_settings(
            fromjson(mine[0].settings), fromjson(increment.settings)
        ) -%}
        {%- if settings -%}
            {{ raise_error(name ~ " was built with " ~ first_names(settings), refresh_command()) }}
        {%- endif -%}
        {%- set changed = changed_code(increment, mine) -%}
        {%- if "checksums" in changed -%}
            {{ raise_error(
                name ~ " was built by an older version of this project, which recorded no such"
                ~ " checksums",
                "dbt build --full-refresh",
            ) }}
        {%- endif -%}
        {%- if changed -%}
            {{ raise_error(
                name ~ " was built from other code of " ~ first_names(changed),
                refresh_command(),
            ) }}
        {%- endif -%}
    {%- endif -%}
    {%- if not var("accept_changed_code") -%}
        {%- do assert_parents_are_of_this_code(increment) -%}
    {%- endif -%}
{%- endmacro %}

{#- Raises an error for a model whose parents (views, tables or seeds) are not built yet, or were
    built from other code than the project's. -#}
{% macro assert_parents_are_of_this_code(increment) -%}
    {%- set parents = parents_of_other_code(model.unique_id) -%}
    {%- set names, missing = [], [] -%}
    {%- for parent in parents -%}
        {%- do (missing if built_checksum(parent) is none else names).append(
            node_name(parent)
        ) -%}
    {%- endfor -%}
    {%- if missing -%}
        {{ raise_error(
            increment.model_name ~ " reads " ~ first_names(missing)
            ~ ", not built yet",
            "dbt build --select +" ~ node_name(graph.nodes[model.unique_id]),
        ) }}
    {%- elif names -%}
        {{ raise_error(
            increment.model_name ~ " reads " ~ first_names(names)
            ~ ", built from other code than the project has",
            build_command(model.unique_id, flags.FULL_REFRESH),
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- The parents that were built from other code, or from code that is not recorded. -#}
{% macro parents_of_other_code(node_id) -%}
    {%- set found = [] -%}
    {%- for node in rewritten_parents(node_id)
        if not is_deferred(node) and not is_built_by_this_code(node) -%}
        {%- do found.append(node) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- The name and both values of each changed setting. -#}
{% macro changed_settings(before, now) -%}
    {%- set changed = [] -%}
    {%- for name in (before.keys() | list + now.keys() | list) | unique | sort
        if before.get(name) != now.get(name) -%}
        {%- do changed.append(
            name ~ " " ~ tojson(before.get(name))[:40]
            ~ ", which is now " ~ tojson(now.get(name))[:40]
        ) -%}
    {%- endfor -%}
    {{ return(changed) }}
{%- endmacro %}

{#- The names of the models and seeds whose code changed since the model's rows were built;
    `checksums` if an older version of the project built them. -#}
{% macro changed_code(increment, mine) -%}
    {%- if var("accept_changed_code") -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set before = fromjson(mine[0].code or "{}") -%}
    {%- set now = fromjson(increment.code) -%}
    {%- set changed = [] -%}
    {%- for name in (before.keys() | list + now.keys() | list) | unique | sort -%}
        {%- if before.get(name) != now.get(name) or now[name] == "deferred" -%}
            {%- do changed.append(name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(changed) }}
{%- endmacro %}

{#- Raises an error if the bronze table was recreated or rolled back: commit ids then start again,
    and the recorded read point is meaningless. -#}
{% macro assert_same_table(increment, stream, read) -%}
    {%- set fix = "dbt build --full-refresh --select source:" ~ stream ~ "+" -%}
    {%- for mine in own_reads(increment) if mine.source_name == stream -%}
        {%- if mine.table_uuid and read.table_uuid and mine.table_uuid != read.table_uuid -%}
            {{ raise_error(
                bronze_table(stream) ~ " was recreated (" ~ read.table_uuid ~ ") since "
                ~ increment.model_name ~ " read it (" ~ mine.table_uuid ~ ")",
                fix,
            ) }}
        {%- endif -%}
        {%- if mine.table_since and read.table_since
            and mine.table_since != read.table_since -%}
            {{ raise_error(
                bronze_table(stream) ~ " was rolled back to an earlier commit since "
                ~ increment.model_name ~ " read it",
                fix,
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if read.to < read.after -%}
        {{ raise_error(
            bronze_table(stream) ~ " ends with commit " ~ read.to ~ " and "
            ~ increment.model_name ~ " has read up to " ~ read.after
            ~ ", so the table was recreated or rolled back",
            fix,
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Raises an error for --empty and --sample where marts have read points: views keep the limit or
    sample that they were created with, and increments would count the missing rows as read. -#}
{% macro assert_whole_build() -%}
    {%- if execute and target.name != "lint" and is_partial_build() and writes_rows() -%}
        {%- set table = increment_tables().read_points -%}
        {%- set recorded = run_query("select count(*) as row_count from " ~ table) -%}
        {%- if recorded.rows[0][0] | int > 0 -%}
            {{ exceptions.raise_compiler_error(
                ("--empty" if flags.EMPTY else "--sample")
                ~ " would leave rows out that count as read, by " ~ table
                ~ ": leave the flag out, or build into schemas of your own"
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Raises an error for an incremental model with a stateful parent whose changes its increments
    do not follow, such as a join that the increment does not declare. Compares the model's
    dependencies with the parents it follows. A fact by keys follows only the parents that
    `changed_keys` names, whose columns it compares. -#}
{% macro assert_parents_are_followed(increment) -%}
    {%- set reads = {} if increment.get("own_changes") else increment.reads -%}
    {%- set names = unfollowed_parents(model.unique_id, reads, increment.follows) -%}
    {%- if names and model.config.materialized == "incremental" -%}
        {%- do raise_unfollowed_error(increment, names) -%}
    {%- endif -%}
{%- endmacro %}

{#- Raises the error of `assert_parents_are_followed`. -#}
{% macro raise_unfollowed_error(increment, names) -%}
    {{ exceptions.raise_compiler_error(
        increment.model_name ~ " reads " ~ first_names(names)
        ~ ", whose changes its increments do not follow: let them follow it "
        ~ "(docs/architecture.md, Increments), or set materialized='table'"
    ) }}
{%- endmacro %}

{#- The names of a model's stateful parents, direct or behind views, that it does not follow. A
    table contains what its parents contained when it was built; a seed is code. -#}
{% macro unfollowed_parents(node_id, reads, follows=()) -%}
    {%- set found = [] -%}
    {%- for parent in graph.nodes[node_id].depends_on.nodes -%}
        {%- if parent in graph.sources -%}
            {%- set source = graph.sources[parent] -%}
            {%- set name = source.source_name ~ "." ~ source.name -%}
            {%- if name not in reads -%}
                {%- do found.append(name) -%}
            {%- endif -%}
        {%- elif parent in graph.nodes -%}
            {%- set node = graph.nodes[parent] -%}
            {#- A deferred parent is read, and followed, by its name in the other target. -#}
            {%- set there = is_deferred(node) and node.get("defer_relation") or node -%}
            {%- set name = there.schema ~ "." ~ there.alias -%}
            {%- if name in reads or parent in follows -%}
            {%- elif has_own_data(node) -%}
                {%- do found.append(name) -%}
            {%- elif node.config.materialized != "table" -%}
                {%- do found.extend(unfollowed_parents(parent, reads)) -%}
            {%- elif unfollowed_parents(parent, {}) -%}
                {%- do found.append(name) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found | unique | list) }}
{%- endmacro %}

{#- Whether a node is stateful: its rows do not follow from its code and parents alone, because
    earlier runs added them or because a Python model creates them. -#}
{% macro has_own_data(node) -%}
    {{ return(
        node.config.materialized in ["incremental", "snapshot"]
        or node.get("language") == "python"
    ) }}
{%- endmacro %}

{#- The command for a full refresh of a model. -#}
{% macro refresh_command(node_id=none) -%}
    {{ return(build_command(node_id or model.unique_id, is_full_refresh=true)) }}
{%- endmacro %}

{#- The command that builds a model and its children, if all their other parents exist, preceded
    by the parents that were built from other code: by name if there are few, otherwise all
    parents. `dbt run` does not include seeds. -#}
{% macro build_command(node_id, is_full_refresh) -%}
    {%- set children = with_children(node_id) -%}
    {%- set has_all = are_parents_there(children) -%}
    {%- set built = children if has_all else [node_id] -%}
    {%- set parents = [] -%}
    {%- for child in built if graph.nodes[child].config.materialized == "incremental" -%}
        {%- for parent in parents_of_other_code(child)
            if parent.unique_id not in built and parent not in parents -%}
            {%- do parents.append(parent) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set names = [] -%}
    {%- for parent in parents -%}
        {%- do names.append(node_name(parent)) -%}
    {%- endfor -%}
    {%- set names = names | join(" ") -%}
    {%- set is_long = names | length > 70 -%}
    {%- set has_seed = parents | selectattr("resource_type", "equalto", "seed") | list -%}
    {{ return(
        "dbt " ~ ("build" if has_seed or is_long else "run")
        ~ (" --full-refresh" if is_full_refresh else "") ~ " --select "
        ~ ("+" if is_long else names ~ (" " if names else ""))
        ~ node_name(graph.nodes[node_id]) ~ ("+" if has_all else "")
    ) }}
{%- endmacro %}

{#- A model and all its descendants. -#}
{% macro with_children(node_id, found=none) -%}
    {%- set found = [] if found is none else found -%}
    {%- if node_id not in found -%}
        {%- do found.append(node_id) -%}
        {%- for node in graph.nodes.values()
            if node.resource_type == "model" and node_id in node.depends_on.nodes -%}
            {%- do with_children(node.unique_id, found) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(found) }}
{%- endmacro %}

{#- Whether all tables that the given models read exist, apart from those models. If only one
    domain is built, parents of marts across domains are missing. -#}
{% macro are_parents_there(node_ids) -%}
    {%- for node_id in node_ids -%}
        {%- for parent in graph.nodes[node_id].depends_on.nodes
            if parent in graph.nodes and parent not in node_ids -%}
            {%- set node = graph.nodes[parent] -%}
            {%- if node.config.materialized in ["incremental", "table"] and not is_deferred(node)
                and adapter.get_relation(node.database, node.schema, node.alias) is none -%}
                {{ return(false) }}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}
