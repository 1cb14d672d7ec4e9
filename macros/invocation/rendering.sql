{#- Whether queries may run while a model is rendered: not while parsing, linting or in unit
    tests. -#}
{% macro queries_lake() -%}
    {{ return(
        execute and target.name != "lint" and model.resource_type != "unit_test"
    ) }}
{%- endmacro %}

{#- The branch that `make render` renders without a lake: `everything`, as in a first build, or
    `increment`. None in a normal run of dbt. -#}
{% macro rendered_branch() -%}
    {{ return(var("rendered_branch", none)) }}
{%- endmacro %}

{#- The rows of a query. Without a lake they are sample rows, and the query is logged, for `make
    render` to check. -#}
{% macro lake_rows(query, sample_rows) -%}
    {%- if rendered_branch() is none -%}
        {{ return(run_query(query).rows) }}
    {%- endif -%}
    {%- do log("asks the lake: " ~ tojson({"node": model.unique_id, "query": query})) -%}
    {{ return(sample_rows) }}
{%- endmacro %}

{#- Whether the command builds models. `dbt compile` and `dbt docs generate` only render them:
    checks that fail a build are skipped. -#}
{% macro writes_rows() -%}
    {{ return(flags.WHICH not in ["compile", "generate", "list", "show", "test"]) }}
{%- endmacro %}

{#- Whether this build omits rows, with `--empty` or `--sample`. -#}
{% macro is_partial_build() -%}
    {{ return(flags.EMPTY or invocation_args_dict.get("sample") is not none) }}
{%- endmacro %}

{#- State shared by all models of an invocation. dbt has no supported way to share it except
    `graph`, and a table would cost a statement per access. The id separates invocations of a
    program that runs dbt repeatedly with one manifest. -#}
{% macro invocation_memory() -%}
    {{ return(graph.setdefault("millrace " ~ invocation_id, {})) }}
{%- endmacro %}
