{% macro sales_window() -%}
    {%- set length = whole_minutes("sales_window_minutes", var("sales_window_minutes")) -%}
    {%- set slide = whole_minutes(
        "sales_window_slide_minutes", var("sales_window_slide_minutes")
    ) -%}
    {%- if slide > length -%}
        {{ exceptions.raise_compiler_error(
            "sales_window_slide_minutes is " ~ slide ~ ": it must not exceed "
            ~ "sales_window_minutes (" ~ length ~ "), or sales between windows are in none"
        ) }}
    {%- endif -%}
    {%- set time_column = var("sales_window_time") -%}
    {%- if time_column not in ["paid_at", "_kafka_timestamp"] -%}
        {{ exceptions.raise_compiler_error(
            "sales_window_time is " ~ (time_column | tojson)
            ~ ": it must be paid_at or _kafka_timestamp"
        ) }}
    {%- endif -%}
    {{ return({
        "length_minutes": length,
        "slide_minutes": slide,
        "time_column": time_column,
        "days_before": (length + 1439) // 1440,
    }) }}
{%- endmacro %}
