{#- Fixes the listing of a schema: the adapter runs `show table extended`, which does not list
    Iceberg views. Without them the docs catalog has no views, and a view that becomes a table
    fails with "View with same name already exists". A view must not have `Provider: iceberg`: the
    adapter would take it for a replaceable table. A v1 catalog lists views among its tables, too:
    each name is listed once, as a view. A catalog without views, as Glue, has an error of its own
    for a missing schema, which the adapter does not know: so it is looked for first. -#}
{% macro spark__list_relations_without_caching(schema_relation) %}
    {%- set relations = [] -%}
    {#- The linter renders without Spark. -#}
    {%- if target.name != "lint" -%}
        {%- set seen = [] -%}
        {%- set kinds = [("views", "Type: VIEW\n"), ("tables", "Provider: iceberg\n")] -%}
        {%- if env_var("DBT_VIEWS_AS", "view") == "ephemeral" -%}
            {%- set like = "show schemas like '" ~ schema_relation.schema ~ "'" -%}
            {%- set kinds = kinds[1:] if run_query(like).rows else [] -%}
        {%- endif -%}
        {%- for kind, information in kinds -%}
            {%- for row in run_query("show " ~ kind ~ " in " ~ schema_relation.schema) -%}
                {%- set name = row[1] -%}
                {%- set is_temporary = row[2] -%}
                {%- if not is_temporary and name not in seen -%}
                    {%- do seen.append(name) -%}
                    {%- do relations.append(
                        (schema_relation.schema, name, false, information)
                    ) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(relations) }}
{% endmacro %}
