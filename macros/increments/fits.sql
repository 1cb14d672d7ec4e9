{#- Stops a run that would mix rows of different code or settings, or build rows from parents that
    the lake has from other code, and names the command that mends it. An increment goes on where
    its rows were made by the same code, under the same settings, from parents that the lake still
    has from this code. What is built whole needs the parents alone. -#}
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

{#- Stops a run whose model reads views, tables or seeds that are not built yet, or from other code
    than the project has. -#}
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

{#- The parents that the lake has from other code, or from code that it does not record. -#}
{% macro parents_of_other_code(node_id) -%}
    {%- set found = [] -%}
    {%- for node in rewritten_parents(node_id)
        if not is_deferred(node) and not is_built_by_this_code(node) -%}
        {%- do found.append(node) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- Of each setting that differs its name, and both values. -#}
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

{#- The names of the models and seeds whose code is another than the model's rows were made
    with; `checksums` where an older version made them. -#}
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

{#- A recreated table counts its commits from 1 again, and one that was set back from where it
    stands: what was read before says nothing of it, however far it has come since. -#}
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
                bronze_table(stream) ~ " was set back to an earlier commit since "
                ~ increment.model_name ~ " read it",
                fix,
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if read.to < read.after -%}
        {{ raise_error(
            bronze_table(stream) ~ " ends with commit " ~ read.to ~ " and "
            ~ increment.model_name ~ " has read up to " ~ read.after
            ~ ", so the table was recreated or set back",
            fix,
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Views keep the limit or the sample that they were made with, and marts that were built
    count what they did not see as read. -#}
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

{#- Stops an incremental model that reads something with data of its own whose changes its
    increments would never see. What changes in a parent must come into the increments of what
    reads it. By what a model depends on, and what it has recorded or compared: a join that the
    increment does not know of is found. A fact by keys follows what `changed_keys` names, and of
    that no other view: it compares columns. -#}
{% macro assert_parents_are_followed(increment) -%}
    {%- set reads = {} if increment.get("own_changes") else increment.reads -%}
    {%- set names = unfollowed_parents(model.unique_id, reads, increment.follows) -%}
    {%- if names and model.config.materialized == "incremental" -%}
        {%- do raise_unfollowed_error(increment, names) -%}
    {%- endif -%}
{%- endmacro %}

{#- The error of `assert_parents_are_followed`. -#}
{% macro raise_unfollowed_error(increment, names) -%}
    {{ exceptions.raise_compiler_error(
        increment.model_name ~ " reads " ~ first_names(names)
        ~ ", whose changes its increments do not follow: let them follow it "
        ~ "(docs/architecture.md, Increments), or set materialized='table'"
    ) }}
{%- endmacro %}

{#- The names of what a model reads, directly or through views, that has data of its own and is not
    followed. A table has what its parents held when it was built; a seed is code. -#}
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
            {#- A parent of another target is read, and followed, by its name there. -#}
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

{#- Whether rows are in it that its code and its parents do not give: those of earlier runs, or of
    what dbt runs and does not read, a model in Python. -#}
{% macro has_own_data(node) -%}
    {{ return(
        node.config.materialized in ["incremental", "snapshot"]
        or node.get("language") == "python"
    ) }}
{%- endmacro %}

{#- What builds a model from the beginning. -#}
{% macro refresh_command(node_id=none) -%}
    {{ return(build_command(node_id or model.unique_id, is_full_refresh=true)) }}
{%- endmacro %}

{#- What builds a model, with all that is made of it where the lake has what that needs, and before
    them those of their parents that the lake has from other code. Few parents by their names; of
    many it is all that the model reads. `dbt run` has no seeds. -#}
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
    {%- set is_long = names | length > 100 -%}
    {%- set has_seed = parents | selectattr("resource_type", "equalto", "seed") | list -%}
    {{ return(
        "dbt " ~ ("build" if has_seed or is_long else "run")
        ~ (" --full-refresh" if is_full_refresh else "") ~ " --select "
        ~ ("+" if is_long else names ~ (" " if names else ""))
        ~ node_name(graph.nodes[node_id]) ~ ("+" if has_all else "")
    ) }}
{%- endmacro %}

{#- A model and all models that read it, directly or not. -#}
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

{#- Whether the lake has all tables that some models read, but for those models themselves. Of one
    domain alone not all is there that some mart of several domains reads. -#}
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
