{% macro asks_the_lake() -%}
    {{ return(
        execute and target.name != "lint" and model.resource_type != "unit_test"
    ) }}
{%- endmacro %}

{#- Which branch `make render` asks for, with no lake to ask: `everything` as at a first build,
    or `increment`. None: dbt is at work, and the lake answers. -#}
{% macro rendered_branch() -%}
    {{ return(var("rendered_branch", none)) }}
{%- endmacro %}

{#- A model's question to the lake. Rendering answers with the made-up rows, and tells the log
    what would have been asked. -#}
{% macro lake_rows(query, made_up) -%}
    {%- if rendered_branch() is none -%}
        {{ return(run_query(query).rows) }}
    {%- endif -%}
    {%- do log("asks the lake: " ~ tojson({"node": model.unique_id, "query": query})) -%}
    {{ return(made_up) }}
{%- endmacro %}

{#- `dbt compile` and `dbt docs generate` render the same models and write no row: what
    would stop a build does not stop them. -#}
{% macro writes_rows() -%}
    {{ return(flags.WHICH not in ["compile", "generate", "list", "show", "test"]) }}
{%- endmacro %}
