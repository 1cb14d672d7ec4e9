{% macro new_rows(increment, stream, until=none) -%}
    {%- set read = read_of_stream(increment, stream, until) -%}
    {%- if increment.is_everything -%}
        coalesce(_commit_id, 0) <= {{ read.to }}
    {%- else -%}
        _commit_id > {{ read.after }} and _commit_id <= {{ read.to }}
    {%- endif -%}
{%- endmacro %}

{#- From where to where this increment reads a stream; recorded when it is done. Which
    table it is is asked first: one that is recreated in between is found out at the next
    increment. -#}
{% macro read_of_stream(increment, stream, until=none) -%}
    {%- if stream not in increment.reads -%}
        {%- set table = bronze_identity(stream) if asks_the_lake() else {} -%}
        {%- if until is none -%}
            {%- set until = dict(table, to=read_point(stream)) -%}
        {%- endif -%}
        {%- set read = {
            "after": read_surely(increment, stream),
            "to": until.to,
            "table_uuid": until.table_uuid,
            "table_since": until.table_since,
        } -%}
        {%- if asks_the_lake() and writes_rows() and not increment.is_everything -%}
            {%- do assert_same_table(increment, stream, read) -%}
        {%- endif -%}
        {%- do increment.reads.update({stream: read}) -%}
    {%- endif -%}
    {{ return(increment.reads[stream]) }}
{%- endmacro %}

{#- How far the model has read a stream, whatever a run of unknown end may have replaced. -#}
{% macro read_surely(increment, stream) -%}
    {%- set ends = [read_to(increment, stream)] -%}
    {%- for run in increment.unfinished.values() if stream in run.after -%}
        {%- do ends.append(run.after[stream]) -%}
    {%- endfor -%}
    {{ return(ends | min) }}
{%- endmacro %}

{#- How far the model had read a stream or a model before this increment. -#}
{% macro read_to(increment, source_name) -%}
    {%- for read in increment.recorded.reads
        if read.model_name == increment.model_name and read.source_name == source_name -%}
        {{ return(read.read_to) }}
    {%- endfor -%}
    {{ return(0) }}
{%- endmacro %}
