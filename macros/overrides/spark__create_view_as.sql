{#- Fixes the creation of views, where the adapter ignores `tblproperties` and recreates unchanged
    views. -#}
{% macro spark__create_view_as(relation, sql) -%}
    {%- set types = {} -%}
    {%- for column in run_query("describe query " ~ sql) -%}
        {%- do types.update({column["col_name"]: column["data_type"]}) -%}
    {%- endfor -%}
    {%- set columns -%}
        {%- if config.persist_column_docs() %}
    ({{ get_persist_docs_column_list(model.columns, types) }})
        {%- endif %}
    {%- endset -%}
    {%- set promised = [] -%}
    {%- if config.get("contract").enforced -%}
        {%- for column in model.columns.values() -%}
            {%- do promised.append([column.name, column.data_type]) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set properties = spark__tblproperties_clause() -%}
    {%- set checksum = local_md5(tojson(
        [types, columns, comment_clause(), properties, promised, sql]
    )) -%}
    {#- Spark truncates struct types after 25 fields. -#}
    {%- set code = modules.re.findall("'millrace\\.code' = '(\\w+)'", properties) -%}
    {%- if " more fields" not in tojson(types) and is_view_there(relation, [checksum] + code, sql) -%}
        select 'nothing is new' as outcome
    {%- else -%}
        create or replace view {{ relation }}
        {{- columns }}
        {{ comment_clause() }}
        {{ spark__tblproperties_clause({"millrace.view": checksum}) }}
        {%- if config.get("contract").enforced -%}
            {{ get_assert_columns_equivalent(sql) }}
        {%- endif %}
        as
        {{ sql }}
    {%- endif -%}
{%- endmacro %}

{#- Whether a view exists with the same SQL, descriptions and types: by its recorded checksums and
    by its SQL, any of which may have been replaced since. Equal types show that its inputs have not
    changed either. -#}
{% macro is_view_there(relation, recorded, sql) -%}
    {#- The staging view of a snapshot has no schema; it is dropped behind each run. -#}
    {%- if not relation.schema -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set there = adapter.get_relation(
        relation.database, relation.schema, relation.identifier
    ) -%}
    {%- if should_full_refresh() or there is none or not there.is_view -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set made = run_query("show create table " ~ relation).rows[0][0] -%}
    {%- set missing = recorded | reject("in", made) | list -%}
    {{ return(not missing and made.strip().endswith(sql.strip())) }}
{%- endmacro %}
