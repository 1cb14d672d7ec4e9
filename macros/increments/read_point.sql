{#- Two threads may ask at once: both then go by what the first wrote down. -#}
{% macro read_point(stream) -%}
    {%- if not asks_the_lake() -%}
        {{ return(9223372036854775807) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- set key = "read point of " ~ stream -%}
    {%- if key not in memory -%}
        {%- set newest = lake_rows(
            "select max(_commit_id) as newest from " ~ bronze_table(stream), [[9]]
        )[0][0] -%}
        {%- do memory.setdefault(key, (newest or 0) | int) -%}
    {%- endif -%}
    {{ return(memory[key]) }}
{%- endmacro %}
