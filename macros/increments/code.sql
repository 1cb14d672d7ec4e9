{#- The code behind a model's rows: by name, a checksum of its own code and of each view, table
    and seed upstream, up to incremental models, which record their own. -#}
{% macro model_code() -%}
    {#- Increase the number whenever checksums are computed differently. -#}
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

{#- The views, tables and seeds between a model and its stateful ancestors, in build order. -#}
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

{#- A checksum, twelve hexadecimal digits, of a seed's file, or of a model's code with the macros
    it calls, the variables it uses and its captured sources. Descriptions, layout and comments do
    not count. -#}
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

{#- Values of the variables and environment variables that a node uses. `log_restarts` covers all
    databases: a node's own are in its `captured_settings`. Secrets of the environment are
    excluded. -#}
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

{#- The input of `captured_changes`: a source's columns and its capture settings. -#}
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

{#- Code without comments, with whitespace normalized, so that line breaks do not count. Quoted
    text stays as it is, and so do comments that contain Jinja, which dbt renders. Regular
    expressions do it: a loop of Jinja takes two tenths of a second for a model's macros. -#}
{% macro bare_code(text) -%}
    {%- set quoted = "'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"" -%}
    {%- set blank = (
        "\\s|\\{#.*?#\\}|--(?:(?!\\{\\{|\\{%)[^\n])*(?=\n|\\Z)|/\\*(?:(?!\\*/|\\{\\{|\\{%).)*\\*/"
    ) -%}
    {%- set code = quoted ~ "|--[^\n]*|/\\*.*?\\*/|[^\\s'\"{/-]+|." -%}
    {%- set parts = modules.re.findall(
        "(?s)((?:(?!" ~ blank ~ ")(?:" ~ code ~ "))+)|(?:" ~ blank ~ ")+", text
    ) -%}
    {{ return(modules.re.sub(
        "(?s)(" ~ quoted ~ ")|(?<=[(,]) | (?=[),])", "\\1", parts | select | join(" ")
    )) }}
{%- endmacro %}

{#- A macro and the macros that it calls: the project's and those of packages, not dbt's own.
    Macros that read and write increments decide when rows are built, not their values. -#}
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

{#- Whether `ref` resolves to the relation of another target, as dbt's --defer decides. -#}
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

{#- The code checksum that a relation was built with; none if the relation does not exist. It is
    stored with the relation, in the same statement or transaction: as a table property on Spark,
    at the end of the comment on Redshift. A failed run never leaves new rows with an old
    checksum. -#}
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

{#- Reads that checksum: from a table property on Spark, from the end of the comment on Redshift. -#}
{% macro recorded_checksum(relation) -%}
    {{ return(adapter.dispatch("recorded_checksum")(relation)) }}
{%- endmacro %}

{#- Without that property Spark returns a sentence, which equals no checksum. -#}
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

{#- Whether a relation was built by the current code, or will be in this run. The SQL of an
    ephemeral model is part of its child. -#}
{% macro is_built_by_this_code(node) -%}
    {{ return(
        node.config.materialized == "ephemeral"
        or node.unique_id in selected_resources
        or built_checksum(node) == code_checksum_of_relation(node)
    ) }}
{%- endmacro %}

{#- The `built_checksum` of a relation that is up to date with the project's code. For a table it
    includes the code of its parents, whose rows it copied when it was built. -#}
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

{#- The checksum to store with the relation being built. Incremental models record theirs, and
    those of their parents, in `read_points`. -#}
{% macro checksum_to_record() -%}
    {%- if execute and model.resource_type in ["model", "seed"]
        and config.get("materialized") != "incremental" -%}
        {{ return(code_checksum_of_relation(graph.nodes[model.unique_id], true)) }}
    {%- endif -%}
{%- endmacro %}

{#- Runs after a seed's rows are loaded. -#}
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

{#- A description followed by the code checksum, for Redshift. -#}
{% macro comment_with_code(description) -%}
    {%- set checksum = checksum_to_record() -%}
    {{ return(
        (description ~ ("\n\n" if description and checksum else "")
        ~ ("[code " ~ checksum ~ "]" if checksum else ""))
    ) }}
{%- endmacro %}
