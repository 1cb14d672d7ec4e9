{#- What stops a build says what differs and the one command that mends it. -#}
{% macro stop(message, command) -%}
    {{ exceptions.raise_compiler_error(message ~ ": run `" ~ command ~ command_end() ~ "`") }}
{%- endmacro %}

{#- The first three names, and how many more there are. No message is a page long. -#}
{% macro first_names(names) -%}
    {{ return(
        names[:3] | join(", ")
        ~ (" and " ~ (names | length - 3) ~ " more" if names | length > 3 else "")
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

{#- The options of the command that was given, where another one needs them too. `flags` does not
    have these. -#}
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

{#- The option that names the folder of the artifacts to defer to. In quotes where a shell would
    take the folder for two. -#}
{% macro state_option() -%}
    {%- set given = invocation_args_dict -%}
    {%- set folder = (given.get("defer_state") or given.get("state")) | string -%}
    {{ return("--state " ~ ("'" ~ folder ~ "'" if " " in folder else folder)) }}
{%- endmacro %}
