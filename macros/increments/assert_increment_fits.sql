{#- Stops a run that would mix rows of different code or settings, or build rows from parents that
    the lake has from other code, and names the command that mends it. An increment goes on where
    its rows were made by the same code, under the same settings, from parents that the lake still
    has from this code. What is built whole needs the parents alone. -#}
{% macro assert_increment_fits(increment) -%}
    {%- set name = increment.model_name -%}
    {%- if not increment.is_everything -%}
        {%- set mine = own_reads(increment) -%}
        {%- if not mine -%}
            {{ stop(
                name ~ " has no read point in " ~ increment_tables().read_points,
                refresh_command(),
            ) }}
        {%- endif -%}
        {%- set settings = changed_settings(
            fromjson(mine[0].settings), fromjson(increment.settings)
        ) -%}
        {%- if settings -%}
            {{ stop(name ~ " was built with " ~ first_names(settings), refresh_command()) }}
        {%- endif -%}
        {%- set changed = changed_code(increment, mine) -%}
        {%- if "checksums" in changed -%}
            {{ stop(
                name ~ " was built by an older version of this project, which recorded no such"
                ~ " checksums",
                "dbt build --full-refresh",
            ) }}
        {%- endif -%}
        {%- if changed -%}
            {{ stop(
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
        {{ stop(
            increment.model_name ~ " reads " ~ first_names(missing)
            ~ ", not built yet",
            "dbt build --select +" ~ node_name(graph.nodes[model.unique_id]),
        ) }}
    {%- elif names -%}
        {{ stop(
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
            {{ stop(
                bronze_table(stream) ~ " was recreated (" ~ read.table_uuid ~ ") since "
                ~ increment.model_name ~ " read it (" ~ mine.table_uuid ~ ")",
                fix,
            ) }}
        {%- endif -%}
        {%- if mine.table_since and read.table_since
            and mine.table_since != read.table_since -%}
            {{ stop(
                bronze_table(stream) ~ " was set back to an earlier commit since "
                ~ increment.model_name ~ " read it",
                fix,
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if read.to < read.after -%}
        {{ stop(
            bronze_table(stream) ~ " ends with commit " ~ read.to ~ " and "
            ~ increment.model_name ~ " has read up to " ~ read.after
            ~ ", so the table was recreated or set back",
            fix,
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Whether this build leaves rows out, with `--empty` or `--sample`. -#}
{% macro is_partial_build() -%}
    {{ return(flags.EMPTY or invocation_args_dict.get("sample") is not none) }}
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
