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
