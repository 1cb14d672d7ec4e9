{#- Whether queries may be sent while a model is rendered: not while parsing, linting or in unit
    tests. -#}
{% macro queries_lake() -%}
    {{ return(
        execute and target.name != "lint" and model.resource_type != "unit_test"
    ) }}
{%- endmacro %}

{#- Which branch `make render` asks for, with no lake to ask: `everything` as at a first build,
    or `increment`. None: dbt is at work, and the lake answers. -#}
{% macro rendered_branch() -%}
    {{ return(var("rendered_branch", none)) }}
{%- endmacro %}

{#- Rows that the lake gives for a query of a model. Without a lake they are made up, and the query
    is written to the log, for `make render` to check. -#}
{% macro lake_rows(query, sample_rows) -%}
    {%- if rendered_branch() is none -%}
        {{ return(run_query(query).rows) }}
    {%- endif -%}
    {%- do log("asks the lake: " ~ tojson({"node": model.unique_id, "query": query})) -%}
    {{ return(sample_rows) }}
{%- endmacro %}

{#- Whether the command at work builds models, rather than only rendering them. `dbt compile` and
    `dbt docs generate` render the same models and write no row: what would stop a build does not
    stop them. -#}
{% macro writes_rows() -%}
    {{ return(flags.WHICH not in ["compile", "generate", "list", "show", "test"]) }}
{%- endmacro %}

{#- Whether this build leaves rows out, with `--empty` or `--sample`. -#}
{% macro is_partial_build() -%}
    {{ return(flags.EMPTY or invocation_args_dict.get("sample") is not none) }}
{%- endmacro %}

{#- `graph` is the one thing that all models of an invocation share: dbt has no place meant for
    it, and a table would cost a statement for each question. The id keeps programs that invoke
    dbt again and again, with one manifest, from reading an old memory. -#}
{% macro invocation_memory() -%}
    {{ return(graph.setdefault("millrace " ~ invocation_id, {})) }}
{%- endmacro %}
