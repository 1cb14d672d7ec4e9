{% macro new_rows(increment, stream, until=none) -%}
    {%- set read = read_of_stream(increment, stream, until) -%}
    {%- if increment.is_everything -%}
        coalesce(_commit_id, 0) <= {{ read.to }}
    {%- else -%}
        _commit_id > {{ read.after }} and _commit_id <= {{ read.to }}
    {%- endif -%}
{%- endmacro %}

{#- From where to where this increment reads a stream; recorded when it is done. -#}
{% macro read_of_stream(increment, stream, until=none) -%}
    {%- if stream not in increment.reads -%}
        {%- do increment.reads.update({stream: {
            "after": read_to(increment, stream),
            "to": read_point(stream) if until is none else until,
        }}) -%}
    {%- endif -%}
    {{ return(increment.reads[stream]) }}
{%- endmacro %}

{#- How far the model had read a stream or a model before this increment. -#}
{% macro read_to(increment, source_name) -%}
    {%- for read in increment.recorded.reads
        if read.model_name == increment.model_name and read.source_name == source_name -%}
        {{ return(read.read_to) }}
    {%- endfor -%}
    {{ return(0) }}
{%- endmacro %}
