{#- Not among the macros of increments: an edit here may make other rows, and so counts as
    changed code of the models. -#}
{% macro new_and_kept_rows(increment, rows, stream, key=none) -%}
    {%- do touch_new_rows(increment, rows, stream, increment.time_column, key) -%}
    {%- set columns = columns_kept_of(rows) -%}
    select
        {{ columns }}
        {{- ", 0 as was_moved" if key }}
    from {{ rows }}
    where {{ new_rows(increment, stream) }}
    {%- if not increment.is_everything %}
    union all
    select
        {{ columns }}
        {{- ", case when has_moved then 1 else 0 end as was_moved" if key }}
    from {{ this }}
    where
        {{ in_touched_days(increment, increment.time_column) }}
        {%- if not key %}
        -- Without those of a run that died before it noted how far it had read: they are
        -- new once more.
        and _commit_id <= {{ increment.reads[stream].after }}
        {%- endif %}
    {%- endif %}
    {%- if increment.moved %}
    union all
    select
        {{ columns }},
        0 as was_moved
    from {{ rows }}
    where {{ older_rows_of_moved(increment, stream) }}
    {%- endif %}
{%- endmacro %}

{#- The columns that a view and the model that keeps its rows both describe. Both have a column
    where both say so in their YAML. dbt does not tell a unit test, which has no table to keep rows
    of. -#}
{% macro columns_kept_of(rows) -%}
    {%- if not execute or model.resource_type == "unit_test" -%}
        {{ return("*") }}
    {%- endif -%}
    {{ return(
        node_of(rows).columns | select("in", model.columns) | join(",\n        ")
    ) }}
{%- endmacro %}
