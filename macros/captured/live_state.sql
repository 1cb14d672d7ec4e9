{#- The current rows of the database, as far as ingest has written them: the current versions of a
    history and the changes after its read point when the view was created, which each build does;
    for each row the last one in the log. Each table is read once: most of the query time is per
    table and small file. If bronze is another table than the history was built from, the view is
    empty until the next build. For people and dashboards: a mart that read it would become
    stale. -#}
{% macro live_state(history, changes, stream, key) -%}
    {%- if not execute -%}
        {{ return("select * from " ~ history ~ " cross join " ~ changes) }}
    {%- endif -%}
    {%- set types = node_of(history).columns -%}
    {%- set attributes = attributes_of_history(history, key) -%}
    {%- set read = read_by_history(history, stream) -%}
    {%- set increment = {
        "reads": {stream: {"after": read.to, "to": 9223372036854775807}},
        "is_full_refresh": false, "keys_to_rebuild": none, "is_truncated": true,
    } -%}
    {%- set truncates = truncates_of(*stream.split(".")) -%}
    {%- set carried = carried_values(
        attributes, texts_of_log(stream, attributes, node_of(history)), []
    ) -%}
    {%- set names = names_of_state(history, ["is_incomplete", "seen_to_at", "_commit_id"]) -%}
    {%- set of_row = "partition by " ~ key | join(", ") -%}
with

changes as (

    -- One shuffle for all windows; a comment to Redshift.
    select /*+ repartition({{ key | join(", ") }}) */ *
    from (
        {{ new_changes_and_current_versions(
            increment, changes, stream, key, attributes, history
        ) | indent(4) }}
    ) as new_and_current

),

{{ ordered_changes(key, attributes, none) }},

newest_changes as (

    select
        *,
        row_number() over (
            {{ of_row }}
            order by
                _position desc,
                _is_current_version desc,
                _commit_id desc,
                _kafka_topic_id desc,
                _kafka_partition desc,
                _kafka_offset desc
        ) as _recency
        {%- for attribute in carried %},
        -- The value of the newest change that has it: s and the value, or n for null.
        substring(
            max(
                case
                    when {{ carried[attribute].has_value }}
                        then rpad(_position, 160, ' ')
                            || coalesce('s' || {{ attribute }}, 'n')
                end
            ) over ({{ of_row }}),
            161
        ) as _latest_{{ attribute }}
        {%- endfor %}
    from ordered_changes

),

newest_rows as (

    select
        {{ key | join(",\n        ") }},
        {%- for attribute in attributes %}
        {%- if attribute in carried %}
        nullif(
            substring(nullif(_latest_{{ attribute }}, 'n'), 2), {{ left_out_value() }}
        ) as {{ attribute }},
        {%- else %}
        {{ attribute }},
        {%- endif %}
        {%- endfor %}
        is_deleted,
        is_incomplete
        {%- for attribute in carried %}
        or coalesce(_latest_{{ attribute }} = 's' || {{ left_out_value() }}, true)
        {%- endfor %} as is_incomplete,
        _changed_at as seen_to_at,
        _commit_id,
        _position
    from newest_changes
    where _recency = 1

)

select
    {%- for column in names %}
    cast({{ column }} as {{ types[column].data_type }}) as {{ column }}
    {{- "," if not loop.last }}
    {%- endfor %}
from newest_rows
where
    not is_deleted
    {%- if truncates %}
    and _position > (
        select coalesce(max(source_position || 'c'), '')
        from (
            {{ truncates | indent(12) }}
        ) as truncates
        where source_position is not null
    )
    {%- endif %}
    and {{ is_same_table(stream, read) | indent(4) }}
{%- endmacro %}

{#- The attributes of a history: its YAML columns without its key and the columns of every
    history. -#}
{% macro attributes_of_history(history, key) -%}
    {%- set attributes = [] -%}
    {%- for column in node_of(history).columns
        if column not in key + columns_of_history() -%}
        {%- do attributes.append(column) -%}
    {%- endfor -%}
    {{ return(attributes) }}
{%- endmacro %}

{#- The confirmed read point of a history, with the bronze table's UUID. -#}
{% macro read_by_history(history, stream) -%}
    {%- set read = dict(recorded_read(history, stream)) -%}
    {%- if queries_lake() and are_increments_recorded() -%}
        {%- for row in lake_rows(
            "select coalesce(unfinished, '{}') from " ~ increment_tables().read_points
            ~ " where model_name = '" ~ history.schema ~ "." ~ history.identifier
            ~ "' and source_name = '" ~ stream ~ "'",
            [],
        ) -%}
            {%- for run in fromjson(row[0]).values() if stream in run.after -%}
                {%- do read.update({"to": [read.to, run.after[stream]] | min}) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(read) }}
{%- endmacro %}

{#- Whether bronze is still the table that the history was built from, neither recreated nor
    rolled back; evaluated whenever the view is queried. -#}
{% macro is_same_table(stream, read) -%}
    {%- set table = bronze_table(stream) -%}
    {%- if read.table_uuid is none -%}
true
    {%- else -%}
not exists (
        select 1
        from {{ bronze_table("ingest.ingest_commits") }}
        where
            kind = 'table'
            and table_name = '{{ table.schema }}.{{ table.identifier }}'
            and {{ epoch_micros("cast(committed_at as timestamp)") }} > {{ read.table_since }}
    )
    {%- endif -%}
{%- endmacro %}
