{#- What makes a model's rows: by name, a checksum of its own code and of that of each view,
    table and seed that it reads, up to the incremental models, which know their own. -#}
{% macro model_code() -%}
    {%- set code = {model.name: code_checksum(graph.nodes[model.unique_id])} -%}
    {%- for node in rewritten_parents(model.unique_id) -%}
        {%- do code.update({node.name: (
            "deferred" if is_deferred(node) else code_checksum(node)
        )}) -%}
    {%- endfor -%}
    {%- for parent in graph.nodes[model.unique_id].depends_on.nodes
        if parent in graph.nodes and is_deferred(graph.nodes[parent]) -%}
        {%- do code.update({graph.nodes[parent].name: "deferred"}) -%}
    {%- endfor -%}
    {{ return(code) }}
{%- endmacro %}

{#- The views, tables and seeds that a model's rows come from, the first ones first: all
    that stands between it and the sources or incremental models. -#}
{% macro rewritten_parents(node_id, found=none) -%}
    {%- set found = [] if found is none else found -%}
    {%- for parent in graph.nodes[node_id].depends_on.nodes | sort if parent in graph.nodes -%}
        {%- set node = graph.nodes[parent] -%}
        {%- if node.config.materialized != "incremental" and node not in found -%}
            {%- do rewritten_parents(parent, found) -%}
            {%- do found.append(node) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}

{#- Layout and whole lines of comment are left out: they make no rows. -#}
{% macro code_checksum(node) -%}
    {%- if node.resource_type == "seed" -%}
        {{ return(node.checksum.checksum[:12]) }}
    {%- endif -%}
    {%- set macros = {} -%}
    {%- for macro_id in node.depends_on.macros -%}
        {%- do row_macros(macro_id, macros) -%}
    {%- endfor -%}
    {%- set texts = [bare_code(node.raw_code)] -%}
    {%- for name in macros | sort -%}
        {%- do texts.append(bare_code(macros[name])) -%}
    {%- endfor -%}
    {{ return(local_md5(texts | join("\n"))[:12]) }}
{%- endmacro %}

{% macro bare_code(text) -%}
    {%- set lines = [] -%}
    {%- for line in modules.re.sub("(?s)\\{#.*?#\\}", "", text).splitlines()
        if line.strip() and not line.strip().startswith("--") -%}
        {%- do lines.append(line.strip()) -%}
    {%- endfor -%}
    {{ return(lines | join("\n")) }}
{%- endmacro %}

{#- The project's macros that a macro stands for, itself among them. What reads and writes
    increments decides when rows are made, not which. -#}
{% macro row_macros(macro_id, found) -%}
    {%- set name = macro_id.rpartition(".")[2] -%}
    {%- if macro_id.startswith("macro." ~ project_name ~ ".")
        and name not in found and name in context -%}
        {%- set text = context[name].macro -%}
        {%- if not text.original_file_path.startswith(
            ("macros/increments/", "macros/overrides/")
        ) -%}
            {%- do found.update({name: text.macro_sql}) -%}
            {%- for other in text.depends_on.macros -%}
                {%- do row_macros(other, found) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Whether `ref` gives a relation of another target, as dbt decides it. -#}
{% macro is_deferred(node) -%}
    {%- set given = invocation_args_dict -%}
    {%- if not given.get("defer") or node.config.materialized == "ephemeral" -%}
        {{ return(false) }}
    {%- endif -%}
    {%- if given.get("favor_state") and node.unique_id not in selected_resources -%}
        {{ return(true) }}
    {%- endif -%}
    {{ return(adapter.get_relation(node.database, node.schema, node.alias) is none) }}
{%- endmacro %}

{#- What builds a model whole, with the parents that its rows come from and with what is
    made of it. -#}
{% macro refresh_command(node_id=none) -%}
    {%- set node_id = node_id or model.unique_id -%}
    {%- set names = [] -%}
    {%- for node in rewritten_parents(node_id) if not is_deferred(node) -%}
        {%- do names.append(node.name) -%}
    {%- endfor -%}
    {%- do names.append(graph.nodes[node_id].name ~ "+") -%}
    {{ return(
        "dbt build --full-refresh --select " ~ names | join(" ") ~ command_end()
    ) }}
{%- endmacro %}

{#- The model that a relation of this target is of. -#}
{% macro node_of(relation) -%}
    {%- for parent in graph.nodes[model.unique_id].depends_on.nodes
        if parent in graph.nodes and graph.nodes[parent].alias == relation.identifier -%}
        {{ return(parent) }}
    {%- endfor -%}
{%- endmacro %}

{#- `flags` does not have these. -#}
{% macro command_end() -%}
    {%- set given = invocation_args_dict -%}
    {%- set words = [""] -%}
    {%- if given.get("defer") -%}
        {%- do words.append("--defer") -%}
        {%- if given.get("favor_state") -%}
            {%- do words.append("--favor-state") -%}
        {%- endif -%}
        {%- do words.append(state_option()) -%}
    {%- endif -%}
    {%- if given.get("target") -%}
        {%- do words.append("--target " ~ given.target) -%}
    {%- endif -%}
    {{ return(words | join(" ")) }}
{%- endmacro %}

{#- In quotes where a shell would take the folder for two. -#}
{% macro state_option() -%}
    {%- set given = invocation_args_dict -%}
    {%- set folder = (given.get("defer_state") or given.get("state")) | string -%}
    {{ return("--state " ~ ("'" ~ folder ~ "'" if " " in folder else folder)) }}
{%- endmacro %}
