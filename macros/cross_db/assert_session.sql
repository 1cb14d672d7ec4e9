{% macro assert_session() -%}
    {%- if execute -%}
        {#- Models of other projects would be built without these overrides: dbt looks up
            materializations and adapter macros in the root project only. -#}
        {%- if model.package_name != project_name -%}
            {{ exceptions.raise_compiler_error(
                model.package_name ~ " is no package for " ~ project_name
                ~ ": clone it and add models of your own, instead of listing it in packages.yml"
            ) }}
        {%- endif -%}
        {{ adapter.dispatch("assert_session")() }}
    {%- endif -%}
{%- endmacro %}

{% macro default__assert_session() -%}
{%- endmacro %}

{#- Spark 3 does not support the statements for column comments, and its functions return other
    types. -#}
{% macro spark__assert_session() -%}
    {%- set version = run_query("select version()").rows[0][0] -%}
    {%- if version.split(".")[0] | int < 4 -%}
        {{ exceptions.raise_compiler_error(
            "this is Spark " ~ version.split(" ")[0] ~ ": Millrace needs Spark 4 or newer"
        ) }}
    {%- endif -%}
    {%- set zone = run_query("set spark.sql.session.timeZone").rows[0][1] -%}
    {%- if zone not in ["UTC", "Etc/UTC", "Z"] -%}
        {{ exceptions.raise_compiler_error(
            "spark.sql.session.timeZone is " ~ zone
            ~ ": set it to UTC in spark-defaults.conf (`make install` writes ours)"
        ) }}
    {%- endif -%}
    {%- set lake_of = run_query("set spark.millrace.home").rows[0][1] -%}
    {%- set wanted = env_var("SANDBOX_HOME", "").rstrip("/") -%}
    {#- A relative path is compared by its end: Jinja cannot resolve it. -#}
    {%- set is_ours = (
        lake_of == wanted if wanted.startswith("/")
        else lake_of.endswith("/" ~ wanted.removeprefix("./"))
    ) -%}
    {%- if wanted and lake_of != "<undefined>" and not is_ours -%}
        {{ exceptions.raise_compiler_error(
            "SANDBOX_HOME is " ~ wanted ~ " but Spark opens the lake of " ~ lake_of
            ~ ": run `make install` or eval \"$(sandbox env)\""
        ) }}
    {%- endif -%}
    {%- if target.name == "sandbox" and lake_of == "<undefined>" -%}
        {{ exceptions.raise_compiler_error(
            "this Spark has no settings of a sandbox: run `make install`"
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- Bronze timestamps have a time zone there, and staging converts them to that of the
    session. -#}
{% macro redshift__assert_session() -%}
    {%- set zone = run_query("show timezone").rows[0][0] -%}
    {%- if zone not in ["UTC", "Etc/UTC", "Z"] -%}
        {{ exceptions.raise_compiler_error(
            "the time zone of the session is " ~ zone
            ~ ": run `alter user " ~ (target.user or "NAME") ~ " set timezone to 'UTC'`"
        ) }}
    {%- endif -%}
{%- endmacro %}
