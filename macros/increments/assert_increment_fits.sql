{#- An increment goes on where its rows were made by the same code, under the same settings,
    from parents that are still the same. A view that stands in the lake is known only by
    having been built: what is built whole is built together with the parents that changed. -#}
{% macro assert_increment_fits(increment) -%}
    {%- set name = increment.model_name -%}
    {%- set mine = own_reads(increment) -%}
    {%- set fix = "run `" ~ refresh_command() ~ "`" -%}
    {%- if not increment.is_everything -%}
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
    {%- endif -%}
    {%- set changed = changed_code(increment, mine) -%}
    {%- if changed and not increment.is_everything -%}
        {{ exceptions.raise_compiler_error(
            name ~ " was built with other code of " ~ changed | join(", ")
            ~ ": old and new rows would mix; " ~ fix
            ~ ". Where the change makes no other rows, add "
            ~ "`--vars '{accept_changed_code: true}'` to the command that you gave"
        ) }}
    {%- endif -%}
    {%- set not_built = [] -%}
    {%- for node in rewritten_parents(model.unique_id) if node.name in changed -%}
        {%- if node.unique_id not in selected_resources
            and node.config.materialized != "ephemeral" and not is_deferred(node) -%}
            {%- do not_built.append(node.name) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not_built -%}
        {{ exceptions.raise_compiler_error(
            name ~ " would be built from " ~ not_built | join(", ")
            ~ " as somebody built it, with code that nobody knows: " ~ fix
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- The names of the models and seeds whose code is another than the model's rows were made
    with. An older lake does not say. -#}
{% macro changed_code(increment, mine) -%}
    {%- if var("accept_changed_code") or (mine and mine[0].code is none) -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set before = fromjson(mine[0].code) if mine else {} -%}
    {%- set now = fromjson(increment.code) -%}
    {%- set changed = [] -%}
    {%- for name in (before.keys() | list + now.keys() | list) | unique | sort -%}
        {%- if before.get(name) != now.get(name) or now[name].startswith("deferred") -%}
            {%- do changed.append(name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(changed) }}
{%- endmacro %}

{#- A recreated table counts its commits from 1 again, and one that was set back from where it
    stands: what was read before says nothing of it, however far it has come since. Rows that got
    another commit id may have been read under the old one, or passed over. -#}
{% macro assert_same_table(increment, stream, read) -%}
    {%- set fix = (
        "run `dbt build --full-refresh --select source:" ~ stream ~ "+"
        ~ command_end() ~ "`"
    ) -%}
    {%- for mine in own_reads(increment) if mine.source_name == stream -%}
        {%- if mine.table_uuid and read.table_uuid and mine.table_uuid != read.table_uuid -%}
            {{ exceptions.raise_compiler_error(
                bronze_table(stream) ~ " was recreated (" ~ read.table_uuid ~ ") since "
                ~ increment.model_name ~ " read it (" ~ mine.table_uuid ~ "): " ~ fix
            ) }}
        {%- endif -%}
        {%- if mine.table_since and read.table_since
            and mine.table_since != read.table_since -%}
            {{ exceptions.raise_compiler_error(
                bronze_table(stream)
                ~ " was set back to an earlier commit, or rows of it got another commit id, since "
                ~ increment.model_name ~ " read it: " ~ fix
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if read.to < read.after -%}
        {{ exceptions.raise_compiler_error(
            bronze_table(stream) ~ " ends with commit " ~ read.to ~ " and "
            ~ increment.model_name ~ " has read up to " ~ read.after
            ~ ": the table was recreated, or set back; " ~ fix
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- A build that leaves rows out. -#}
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
