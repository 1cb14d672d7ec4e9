{#- Finds the keys that the version which holds does not suffice for, and says so in the
    increment: `late`, a condition of their rows. Of these all changes are read again. Late is a
    change that lies before one that was seen, a tombstone that nothing came before, and any
    change of a row with a value that nobody knows. -#}
{% macro touch_late_keys(increment, changes, stream, key) -%}
    {%- set read = read_of_stream(increment, stream) -%}
    {%- do increment.update({"late": none, "key": key_text(key)}) -%}
    {%- if not increment.is_everything and asks_the_lake() and read.after < read.to -%}
        {%- set query = late_keys(increment, changes, stream, key) -%}
        {%- set found = lake_rows(
            query ~ " limit " ~ (most_late_keys() + 1), [["1"], ["O'2"]]
        ) -%}
        {%- set texts = [] -%}
        {%- for row in found -%}
            {%- do texts.append(sql_literal(row[0] | string)) -%}
        {%- endfor -%}
        {%- if texts | length > most_late_keys() -%}
            {%- do increment.update({"is_everything": true}) -%}
        {%- elif texts -%}
            {%- do increment.update({"late": "in (" ~ texts | sort | join(", ") ~ ")"}) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Of more the whole history is made anew: a statement that names them is no cheaper. -#}
{% macro most_late_keys() -%}
    {{ return(2000) }}
{%- endmacro %}

{% macro late_keys(increment, changes, stream, key) -%}
    select fresh.row_name
    from (
        select
            {{ key_text(key) }} as row_name,
            min(case
                when is_tombstone then null
                when is_snapshot then source_position
                else source_position || 'c'
            end) as first_position,
            max(case
                when is_tombstone and offset_of_change is null then 1
                when is_tombstone and offset_of_change > _kafka_offset then 1
                else 0
            end) as has_lone_tombstone
        from (
            select
                *,
                min(case when not is_tombstone then _kafka_offset end) over (
                    partition by {{ key | join(", ") }}, _kafka_topic_id, _kafka_partition
                ) as offset_of_change
            from {{ queryable(changes) }}
            where {{ new_rows(increment, stream) }}
        ) as fresh_changes
        group by {{ key_text(key) }}
    ) as fresh
    inner join (
        select
            {{ key_text(key) }} as row_name,
            seen_to_position,
            is_incomplete
        from {{ this }}
        where is_current
    ) as held
        on fresh.row_name = held.row_name
    where
        fresh.has_lone_tombstone = 1
        or held.is_incomplete
        or fresh.first_position <= held.seen_to_position
{%- endmacro %}

{#- A row's key as one text. -#}
{% macro key_text(key) -%}
    {%- for column in key -%}
        cast({{ column }} as varchar(128)){{ " || '-' || " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
