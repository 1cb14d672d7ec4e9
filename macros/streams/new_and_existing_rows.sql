{#- Not in macros/increments: an edit may change rows, so it counts as changed code of the
    models. -#}
{% macro new_and_existing_rows(increment, rows, stream, key=none) -%}
    {%- do add_days_of_new_rows(increment, rows, stream, increment.time_column, key) -%}
    {%- set columns = shared_columns_of(rows) -%}
    select
        {{ columns }}
        {{- ", 0 as was_moved" if key }}
    from {{ rows }}
    where {{ new_rows(increment, stream) }}
    {%- if not increment.is_full_refresh %}
    union all
    select
        {{ columns }}
        {{- ", case when has_moved then 1 else 0 end as was_moved" if key }}
    from {{ this }}
    where
        {{ in_affected_days(increment, increment.time_column) }}
        {%- if not key %}
        -- Without rows of a run that failed before it recorded its read point: they are read
        -- again.
        and _commit_id <= {{ increment.reads[stream].after }}
        {%- endif %}
    {%- endif %}
    {%- if increment.repartitioned %}
    union all
    select
        {{ columns }},
        0 as was_moved
    from {{ rows }}
    where {{ older_rows_of_repartitioned(increment, stream) }}
    {%- endif %}
{%- endmacro %}

{#- The columns that a view and the model both list in their YAML. In a unit test all columns: dbt
    does not provide the lists, and there are no existing rows. -#}
{% macro shared_columns_of(rows) -%}
    {%- if not execute or model.resource_type == "unit_test" -%}
        {{ return("*") }}
    {%- endif -%}
    {{ return(
        node_of(rows).columns | select("in", model.columns) | join(",\n        ")
    ) }}
{%- endmacro %}
