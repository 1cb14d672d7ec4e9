{#- What the database holds now, as far as ingest has landed it: the newest versions of a history and
    the changes behind what the history had read when this view was made, each build anew. A change
    that both have lies where it lay. Of another bronze table than the history was made of, the view
    is empty until the next build. For people and dashboards: a mart that read it would hold what
    was true once. -#}
{% macro live_state(history, changes, stream, key) -%}
    {%- if not execute -%}
        {{ return("select * from " ~ history ~ " cross join " ~ changes) }}
    {%- endif -%}
    {%- set types = node_of(history).columns -%}
    {%- set attributes = attributes_of_history(history, key) -%}
    {%- set read = read_by_history(history, stream) -%}
    {%- set increment = {
        "reads": {stream: {"after": read.to, "to": 9223372036854775807}},
        "is_everything": false, "late": none, "is_emptied": false,
    } -%}
    {%- set truncates = truncates_of(*stream.split(".")) -%}
    {%- if truncates -%}
        {#- Those of before too: a new change may lie before one of them. -#}
        {%- set truncates -%}
    select *
    from (
        {{ truncates }}
    ) as records
    where source_position is not null
        {%- endset -%}
    {%- endif -%}
    select
        {%- for column in names_of_state(history) %}
        cast({{ column }} as {{ types[column].data_type }}) as {{ column }}
        {{- "," if not loop.last }}
        {%- endfor %}
    from (
        {{ versions_of_changes(
            new_changes_and_current_versions(
                increment, changes, stream, key, attributes, history
            ),
            key,
            attributes,
            attributes,
            kept_values(
                attributes, texts_of_log(stream, attributes, node_of(history)), []
            ),
            truncates,
            may_take_keys=may_take_keys(stream),
        ) | indent(8) }}
    ) as changed_rows
    where
        is_current
        and not is_deleted
        and {{ stands_there(stream, read) | indent(8) }}
    union all
    -- The rows without new changes.
    select
        {{ columns_of_state(history) }}
    from {{ history }} as versions
    where
        is_current
        and not is_deleted
        and not exists (
            select 1
            from {{ changes }} as new_changes
            where
                {{ new_rows(increment, stream) }}
                and {{ has_place(key) }}
                {%- for column in key %}
                and new_changes.{{ column }} = versions.{{ column }}
                {%- endfor %}
        )
        {%- if truncates %}
        and seen_to_position > (
            select coalesce(max(source_position || 'c'), '')
            from (
                {{ truncates | indent(12) }}
            ) as truncates
        )
        {%- endif %}
        and {{ stands_there(stream, read) | indent(8) }}
{%- endmacro %}

{#- What the YAML of a history lists between its key and the columns that each history has. -#}
{% macro attributes_of_history(history, key) -%}
    {%- set attributes = [] -%}
    {%- for column in node_of(history).columns
        if column not in key + columns_of_history() -%}
        {%- do attributes.append(column) -%}
    {%- endfor -%}
    {{ return(attributes) }}
{%- endmacro %}

{#- How far a history has read a stream for sure, and of which bronze table. -#}
{% macro read_by_history(history, stream) -%}
    {%- set read = dict(recorded_read(history, stream)) -%}
    {%- if asks_the_lake() and are_increments_recorded() -%}
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

{#- Whether the stream's table is the one that a history was made of, and stands as it stood then;
    asked whenever the view is read. -#}
{% macro stands_there(stream, read) -%}
    {%- set table = bronze_table(stream) -%}
    {%- if read.table_uuid is none -%}
true
    {%- else -%}
exists (
    select 1
    from (
        select
            table_uuid,
            {{ epoch_micros("cast(committed_at as timestamp)") }} as table_since,
            row_number() over (order by committed_at desc, table_uuid desc) as recency
        from {{ bronze_table("ingest.ingest_commits") }}
        where
            kind = 'table'
            and table_name = '{{ table.schema }}.{{ table.identifier }}'
    ) as tables
    where
        recency = 1
        and table_uuid = '{{ read.table_uuid }}'
        and table_since = {{ read.table_since }}
)
    {%- endif -%}
{%- endmacro %}
