{#- Each column has as many non-null values in staging as in bronze, and both have as many rows. dbt
    disables Spark's ANSI mode: a value that cannot be cast becomes null without an error.

    of: The source. renamed: The name in staging of each source column that is renamed there.
    left_out: Source columns that staging omits because the engines share no type for them. -#}
{% test casts_keep(model, of, renamed={}, left_out=[]) %}

{%- set columns = {} -%}
{%- if execute -%}
    {%- for source in graph.sources.values() if of | string == source.relation_name -%}
        {%- for column in source.columns
            if not column.startswith("_") and column not in left_out -%}
            {%- do columns.update({column: renamed.get(column, column)}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not columns -%}
        {{ exceptions.raise_compiler_error("casts_keep: " ~ of ~ " describes no column") }}
    {%- endif -%}
{%- endif %}

with

raw_counts as (

    select
        {% for column in columns %}
            count(records.{{ column }}) as {{ column }}_count,
        {% endfor %}
        count(*) as record_count
    from {{ of }} as records

),

staged_counts as (

    select
        {% for column, staged in columns.items() %}
            count({{ staged }}) as {{ column }}_count,
        {% endfor %}
        count(record_key) as record_count
    from {{ model }}

)

select
    {% for column in columns %}
        raw_counts.{{ column }}_count as raw_{{ column }}_count,
        staged_counts.{{ column }}_count as staged_{{ column }}_count,
    {% endfor %}
    raw_counts.record_count as raw_record_count,
    staged_counts.record_count as staged_record_count
from raw_counts
cross join staged_counts
where
    raw_counts.record_count <> staged_counts.record_count
    {% for column in columns %}
        or raw_counts.{{ column }}_count <> staged_counts.{{ column }}_count
    {% endfor %}

{% endtest %}
