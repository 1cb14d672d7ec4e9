{#- How a model is built. One that begins an increment found out while it was rendered what it has
    read, that it still fits, and which days or keys change; here it records what will change,
    replaces the rows and records how far it has read. Each record is committed on its own,
    whatever becomes of the model. Any other model is the adapter's. -#}
{% macro build_model(write_rows) -%}
    {%- set increment = current_increment() -%}
    {%- do assert_strategy_is_of_increment(increment) -%}
    {%- if increment -%}
        {%- do assert_parents_are_followed(increment) -%}
    {%- endif -%}
    {#- What --empty or --sample makes has read nothing; the next run says so. -#}
    {%- if not increment or is_partial_build() -%}
        {{ return(write_rows()) }}
    {%- endif -%}
    {%- do announce_increment(increment) -%}
    {%- set relations = write_rows() -%}
    {%- do record_increment(increment) -%}
    {{ return(relations) }}
{%- endmacro %}

{% materialization incremental, adapter="spark" %}
    {{ return(build_model(write_increment)) }}
{% endmaterialization %}

{% materialization table, adapter="spark" %}
    {{ return(build_model(dbt.materialization_table_spark)) }}
{% endmaterialization %}

{% materialization incremental, adapter="redshift" %}
    {{ return(build_model(dbt.materialization_incremental_default)) }}
{% endmaterialization %}

{% materialization table, adapter="redshift" %}
    {{ return(build_model(dbt.materialization_table_redshift)) }}
{% endmaterialization %}

{#- What the model that runs said of its increment when it was rendered; none where it began none. -#}
{% macro current_increment() -%}
    {{ return(invocation_memory().get(
        "increment of " ~ this.schema ~ "." ~ this.identifier
    )) }}
{%- endmacro %}

{#- The rows of an incremental model on Spark. A full refresh is a table's there: the adapter would
    drop the old one before it knows whether there will be another. An increment is one statement
    with the model's query in it, which Spark analyses once; the adapter would make a view of it
    first, to compare the columns, and the checksum of the code has done that. -#}
{% macro write_increment() -%}
    {%- set existing = load_relation(this) -%}
    {%- set is_there = existing and existing.is_iceberg -%}
    {%- if is_there and should_full_refresh() or current_increment() and not is_there -%}
        {{ return(dbt.materialization_table_spark()) }}
    {%- elif not current_increment() -%}
        {{ return(dbt.materialization_incremental_spark()) }}
    {%- endif -%}
    {{ run_hooks(pre_hooks) }}
    {%- do assert_same_columns() -%}
    {%- call statement("main") -%}
        {{ increment_statement("(\n" ~ sql ~ "\n)") }}
    {%- endcall -%}
    {%- do apply_grants(this, config.get("grants"), should_revoke(existing, false)) -%}
    {%- do persist_docs(this, model) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({"relations": [this]}) }}
{%- endmacro %}

{#- Stops an increment of other code whose columns are not those of the table. -#}
{% macro assert_same_columns() -%}
    {%- if var("accept_changed_code") -%}
        {%- set columns = adapter.get_columns_in_relation(this) | map(attribute="name") -%}
        {%- if get_columns_in_query(sql) | sort != columns | sort -%}
            {{ stop(this.identifier ~ " has other columns than its query", refresh_command()) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- dbt's adapters ask for the statement of a strategy by its name; Spark's does not. -#}
{% macro get_incremental_rewrite_sql(arg_dict) -%}
    {{ increment_statement(arg_dict["temp_relation"]) }}
{%- endmacro %}

{% macro get_incremental_rewrite_keys_sql(arg_dict) -%}
    {{ increment_statement(arg_dict["temp_relation"]) }}
{%- endmacro %}

{#- A statement that replaces the rows that an increment changes by those of a relation or a query.
    `rewrite`: all rows of the days that changed; a day without a row becomes empty. `rewrite_keys`:
    a history gives, of each row of the database that changed, the version that held with its end,
    and those behind it; of the late ones all. A mart that follows captured tables gives the rows of
    its `changed_keys`. -#}
{% macro increment_statement(rows) -%}
    {%- set increment = current_increment() -%}
    {%- set columns = adapter.get_columns_in_relation(this) | map(attribute="name") | list -%}
    {%- set condition = (
        in_touched_days(increment, increment.time_column)
        if config.get("incremental_strategy") == "rewrite"
        else "1 = 1" if increment.is_everything
        else "" if is_anything_new(increment)
        else "1 = 0"
    ) -%}
    {%- if condition == "1 = 0" -%}
        select 'nothing is new' as outcome
    {%- elif condition -%}
        {{ replace_rows(
            this, condition, "select " ~ columns | join(", ") ~ " from " ~ rows ~ " as fresh"
        ) }}
    {%- elif increment.own_changes -%}
        {{ replace_changed_rows(
            this, rows, columns, increment.key,
            "select distinct " ~ increment.key ~ " from (" ~ increment.own_changes ~ ") as own"
        ) }}
    {%- else -%}
        {{ replace_versions(this, rows, columns, increment.key, increment.late) }}
    {%- endif -%}
{%- endmacro %}

{#- Whether a stream or a parent has more than what was read. -#}
{% macro is_anything_new(increment) -%}
    {%- for read in increment.reads.values() if read.after != read.to -%}
        {{ return(true) }}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}
