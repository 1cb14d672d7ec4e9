{#- Mends the listing of a schema: the adapter asks `show table extended`, which knows no
    Iceberg views. Without them the catalogue of the docs lacks every view, and a view
    that becomes a table fails with "View with same name already exists".
    A view must not say `Provider: iceberg`: the adapter would then take it for a table
    that can be replaced. A v1 catalogue lists views among its tables as well: each name
    counts once, as the view it is. -#}
{% macro spark__list_relations_without_caching(schema_relation) %}
    {%- set relations = [] -%}
    {#- The linter only renders: it needs no Spark. -#}
    {%- if target.name != "lint" -%}
        {%- set seen = [] -%}
        {%- for kind, information in [
            ("views", "Type: VIEW\n"), ("tables", "Provider: iceberg\n")
        ] -%}
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
