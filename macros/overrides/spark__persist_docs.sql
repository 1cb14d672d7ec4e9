{#- Fixes descriptions, which the adapter writes after each run, with another commit of the table
    even if they are unchanged, and which it does not update for tables that are not
    recreated. -#}
{% macro spark__persist_docs(relation, model, for_relation, for_columns) -%}
    {#- A contract guarantees the columns of a table that was just created. -#}
    {%- if config.get("materialized") == "table" and config.get("contract").enforced -%}
        {%- if for_columns and config.persist_column_docs() -%}
            {%- do alter_column_comment(relation, model.columns) -%}
        {%- endif -%}
    {%- elif for_relation and config.persist_relation_docs()
        or for_columns and config.persist_column_docs() and model.columns -%}
        {%- do persist_changed_docs(relation, model, described_table(relation)) -%}
    {%- endif -%}
{%- endmacro %}

{#- The columns of a table, in order, and their descriptions, and that of the table. -#}
{% macro described_table(relation) -%}
    {%- set described = {"description": "", "columns": {}} -%}
    {%- set details = [] -%}
    {%- for name, value, comment in run_query("describe extended " ~ relation).rows -%}
        {%- if not name or name.startswith("#") -%}
            {%- do details.append(name) -%}
        {%- elif not details -%}
            {%- do described.columns.update({name: comment or ""}) -%}
        {%- elif name == "Comment" -%}
            {%- do described.update({"description": value}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(described) }}
{%- endmacro %}

{#- Writes the descriptions that differ from the project's. -#}
{% macro persist_changed_docs(relation, model, described) -%}
    {%- if config.persist_relation_docs()
        and model.description not in ["", described.description] -%}
        {%- do run_query(
            "comment on table " ~ relation ~ " is " ~ text_literal(model.description)
        ) -%}
    {%- endif -%}
    {%- if config.persist_column_docs() -%}
        {%- set there, changed = {}, {} -%}
        {%- for name, comment in described.columns.items() -%}
            {%- do there.update({name | lower: comment}) -%}
        {%- endfor -%}
        {%- for name, column in validate_doc_columns(
            relation, model.columns, described.columns | list
        ).items() if column.description != there[name | lower] -%}
            {%- do changed.update({name: column}) -%}
        {%- endfor -%}
        {%- do alter_column_comment(relation, changed) -%}
    {%- endif -%}
{%- endmacro %}
