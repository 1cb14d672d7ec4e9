{#- Stops an incremental model that reads something with data of its own whose changes its
    increments would never see. What changes in a parent must come into the increments of what
    reads it. By what a model depends on, and what it has recorded or compared: a join that the
    increment does not know of is found. A fact by keys follows what `changed_keys` names, and of
    that no other view: it compares columns. -#}
{% macro assert_parents_are_followed(increment) -%}
    {%- set reads = {} if increment.get("own_changes") else increment.reads -%}
    {%- set names = unfollowed_parents(model.unique_id, reads, increment.follows) -%}
    {%- if names and model.config.materialized == "incremental" -%}
        {%- do refuse_unfollowed(increment, names) -%}
    {%- endif -%}
{%- endmacro %}

{#- The error of `assert_parents_are_followed`. -#}
{% macro refuse_unfollowed(increment, names) -%}
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
            {%- set name = node.schema ~ "." ~ node.alias -%}
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
