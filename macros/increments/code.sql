{#- What makes a model's rows: by name, a checksum of its own code and of that of each view,
    table and seed that it reads, up to the incremental models, which know their own. -#}
{% macro model_code() -%}
    {#- The number is another one after each change of how checksums are made. -#}
    {%- set code = {
        "checksums": 3, node_name(graph.nodes[model.unique_id]): code_checksum(graph.nodes[model.unique_id])
    } -%}
    {%- for node in rewritten_parents(model.unique_id) -%}
        {%- do code.update({node_name(node): (
            "deferred" if is_deferred(node) else code_checksum(node)
        )}) -%}
    {%- endfor -%}
    {%- for parent in graph.nodes[model.unique_id].depends_on.nodes
        if parent in graph.nodes and is_deferred(graph.nodes[parent]) -%}
        {%- do code.update({node_name(graph.nodes[parent]): "deferred"}) -%}
    {%- endfor -%}
    {{ return(code) }}
{%- endmacro %}

{#- The views, tables and seeds that a model's rows come from, the first ones first: all
    that stands between it and what has data of its own. -#}
{% macro rewritten_parents(node_id, found=none) -%}
    {%- set found = [] if found is none else found -%}
    {%- for parent in graph.nodes[node_id].depends_on.nodes | sort if parent in graph.nodes -%}
        {%- set node = graph.nodes[parent] -%}
        {%- if not has_own_data(node) and node not in found -%}
            {%- do rewritten_parents(parent, found) -%}
            {%- do found.append(node) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- A checksum of a model's code, of the macros that it calls, of the variables that it names and
    of its captured sources, or of a seed's file. Twelve hexadecimal digits of what a model's rows
    or a seed's are made by. Descriptions, layout and comments make no rows. -#}
{% macro code_checksum(node) -%}
    {%- if node.resource_type == "seed" -%}
        {{ return(node.checksum.checksum[:12]) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- set key = "checksum of " ~ node.unique_id -%}
    {%- if key not in memory -%}
        {%- set macros = {} -%}
        {%- for macro_id in node.depends_on.macros -%}
            {%- do row_macros(macro_id, macros) -%}
        {%- endfor -%}
        {%- set texts = [bare_code(node.raw_code)] -%}
        {%- for name in macros | sort -%}
            {%- do texts.append(macros[name]) -%}
        {%- endfor -%}
        {%- do texts.extend(named_variables(texts)) -%}
        {%- if "macro." ~ project_name ~ ".change_history" in macros -%}
            {%- for column in node.columns -%}
                {%- do texts.append(column ~ " " ~ kind_of_text(node, column)) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do texts.extend(captured_sources(node)) -%}
        {%- do memory.update({key: local_md5(texts | join("\n"))[:12]}) -%}
    {%- endif -%}
    {{ return(memory[key]) }}
{%- endmacro %}

{#- Values of the variables and environment variables that the texts of a node name. `log_restarts`
    has instants of all databases: those of its own are in a node's `captured_settings`. A secret of
    the environment is none of a model. -#}
{% macro named_variables(texts) -%}
    {%- set values = [] -%}
    {%- for kind, name in modules.re.findall(
        "\\b(var|env_var)\\(\\s*[\"'](\\w+)", texts | join("\n")
    ) | unique | sort if name != "log_restarts" and not name.startswith("DBT_ENV_SECRET") -%}
        {%- set value = var(name, none) if kind == "var" else env_var(name, "") -%}
        {%- do values.append(kind ~ " " ~ name ~ "=" ~ tojson(value, sort_keys=true)) -%}
    {%- endfor -%}
    {{ return(values) }}
{%- endmacro %}

{#- What `captured_changes` makes SQL of: a source's columns, and how its table is captured. -#}
{% macro captured_sources(node) -%}
    {%- set found = [] -%}
    {%- for source_id in node.depends_on.nodes | sort if source_id in graph.sources -%}
        {%- set source = graph.sources[source_id] -%}
        {%- if "captured" in source.config.meta.get("ingest", {}) -%}
            {%- do found.append(tojson({
                "settings": captured_settings(source.source_name ~ "." ~ source.name),
                "columns": columns_of_values(source),
            }, sort_keys=true)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- Code without comments, each stretch of blanks as one, none beside parentheses and commas:
    lines may be wrapped otherwise. Text in quotes stays as it is, and so does a comment with
    Jinja in it, which dbt renders. -#}
{% macro bare_code(text) -%}
    {%- set parts = [] -%}
    {%- for part in modules.re.findall(
        "(?s)\\{#.*?#\\}|'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|/\\*.*?\\*/|--[^\n]*|\\s+"
        ~ "|[^\\s'\"{/-]+|.",
        text,
    ) -%}
        {%- set is_comment = part.startswith("{#") or (
            part.startswith(("--", "/*")) and not ("{{" in part or "{%" in part)
        ) -%}
        {%- if is_comment or not part.strip() -%}
            {%- if parts and not parts[-1].endswith((" ", "(", ",")) -%}
                {%- do parts.append(" ") -%}
            {%- endif -%}
        {%- else -%}
            {%- if part.startswith((")", ",")) and parts and parts[-1] == " " -%}
                {%- do parts.pop() -%}
            {%- endif -%}
            {%- do parts.append(part) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(parts | join | trim) }}
{%- endmacro %}

{#- The macros that a macro stands for, itself among them: the project's and those of packages, not
    dbt's own. What reads and writes increments decides when rows are made, not which. -#}
{% macro row_macros(macro_id, found) -%}
    {%- set package, name = macro_id.split(".")[1:] -%}
    {%- set macros = context.get(package, {}) if package != "dbt" else {} -%}
    {%- if macro_id not in found and name in macros -%}
        {%- set macro = macros[name].macro -%}
        {%- if package != project_name or not macro.original_file_path.startswith((
            "macros/increments/", "macros/invocation/", "macros/overrides/",
            "macros/captured/changed_keys.sql",
        )) -%}
            {%- set memory = invocation_memory() -%}
            {%- set key = "code of " ~ macro_id -%}
            {%- if key not in memory -%}
                {%- do memory.update({key: bare_code(macro.macro_sql)}) -%}
            {%- endif -%}
            {%- do found.update({macro_id: memory[key]}) -%}
            {%- for other in macro.depends_on.macros -%}
                {%- do row_macros(other, found) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Whether `ref` gives a relation of another target, as dbt decides it. -#}
{% macro is_deferred(node) -%}
    {%- set args = invocation_args_dict -%}
    {%- if not args.get("defer") or node.config.materialized == "ephemeral" -%}
        {{ return(false) }}
    {%- endif -%}
    {%- if args.get("favor_state") and node.unique_id not in selected_resources -%}
        {{ return(true) }}
    {%- endif -%}
    {{ return(adapter.get_relation(node.database, node.schema, node.alias) is none) }}
{%- endmacro %}

{#- The checksum of the code that a relation in the lake was built from; none when it is not there.
    What a relation's rows, or a view's, were made by is kept with it: on Spark a property that the
    creating statement sets, on Redshift the end of its comment, within the transaction. No run
    that dies leaves new rows under an old checksum. -#}
{% macro built_checksum(node) -%}
    {%- set memory = invocation_memory() -%}
    {%- set key = "built checksum of " ~ node.unique_id -%}
    {%- if key not in memory -%}
        {%- set relation = adapter.get_relation(node.database, node.schema, node.alias) -%}
        {%- do memory.update({key: (
            recorded_checksum(relation) if relation is not none else none
        )}) -%}
    {%- endif -%}
    {{ return(memory[key]) }}
{%- endmacro %}

{#- The same as the engine keeps it: a property of the relation on Spark, the end of its comment on
    Redshift. -#}
{% macro recorded_checksum(relation) -%}
    {{ return(adapter.dispatch("recorded_checksum")(relation)) }}
{%- endmacro %}

{#- Spark answers with a sentence where there is no such property: no checksum is like it. -#}
{% macro spark__recorded_checksum(relation) -%}
    {{ return(
        run_query("show tblproperties " ~ relation ~ " ('millrace.code')").rows[0][1]
    ) }}
{%- endmacro %}

{% macro redshift__recorded_checksum(relation) -%}
    {%- set comments = run_query(
        "select descriptions.description"
        ~ " from pg_catalog.pg_description as descriptions"
        ~ " inner join pg_catalog.pg_class as relations"
        ~ " on descriptions.objoid = relations.oid and descriptions.objsubid = 0"
        ~ " inner join pg_catalog.pg_namespace as schemas"
        ~ " on relations.relnamespace = schemas.oid"
        ~ " where schemas.nspname = '" ~ relation.schema
        ~ "' and relations.relname = '" ~ relation.identifier ~ "'"
    ).rows -%}
    {%- set found = modules.re.search(
        "\\[code ([0-9a-f]{12})\\]$", comments[0][0] if comments else ""
    ) -%}
    {{ return(found[1] if found else "") }}
{%- endmacro %}

{#- Whether what stands in the lake was built by the code at hand, or will be, before what reads
    it. The SQL of an ephemeral model is in that of its child. -#}
{% macro is_built_by_this_code(node) -%}
    {{ return(
        node.config.materialized == "ephemeral"
        or node.unique_id in selected_resources
        or built_checksum(node) == code_checksum_of_relation(node)
    ) }}
{%- endmacro %}

{#- What `built_checksum` is when the relation was built from the project's code; for a table also
    from such parents. A view or a seed is its own code; a table has the rows that its parents gave
    when it was built. -#}
{% macro code_checksum_of_relation(node, is_now_built=false) -%}
    {%- if node.config.materialized != "table" -%}
        {{ return(code_checksum(node)) }}
    {%- endif -%}
    {%- set texts = [code_checksum(node)] -%}
    {%- for parent in rewritten_parents(node.unique_id) -%}
        {%- do texts.append(node_name(parent) ~ " " ~ (
            "other" if is_now_built and (
                is_deferred(parent) or not is_built_by_this_code(parent)
            ) else code_checksum(parent)
        )) -%}
    {%- endfor -%}
    {{ return(local_md5(texts | join("\n"))[:12]) }}
{%- endmacro %}

{#- The checksum to keep with the relation that is built now. An incremental model has its own
    in `read_points`, with that of each parent. -#}
{% macro checksum_to_record() -%}
    {%- if execute and model.resource_type in ["model", "seed"]
        and config.get("materialized") != "incremental" -%}
        {{ return(code_checksum_of_relation(graph.nodes[model.unique_id], true)) }}
    {%- endif -%}
{%- endmacro %}

{#- A seed is complete when all its rows are in. -#}
{% macro record_seed_code() -%}
    {%- if execute -%}
        {{ adapter.dispatch("record_seed_code")(this.incorporate(type="table")) }}
    {%- endif -%}
{%- endmacro %}

{% macro spark__record_seed_code(relation) -%}
    alter table {{ relation }}
    set tblproperties ('millrace.code' = '{{ checksum_to_record() }}')
{%- endmacro %}

{% macro redshift__record_seed_code(relation) -%}
    {{ alter_relation_comment(relation, comment_with_code(model.description)) }}
{%- endmacro %}

{#- A description with the checksum of the code behind it, for Redshift. -#}
{% macro comment_with_code(description) -%}
    {%- set checksum = checksum_to_record() -%}
    {{ return(
        (description ~ ("\n\n" if description and checksum else "")
        ~ ("[code " ~ checksum ~ "]" if checksum else ""))
    ) }}
{%- endmacro %}
