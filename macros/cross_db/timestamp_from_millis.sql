{#- Null for a timestamp on a day that `date_from_days` does not support. -#}
{% macro timestamp_from_millis(millis) -%}
    case
            when {{ millis }} between -210866803200000 and 9223372022399999
                then {{ adapter.dispatch("timestamp_from_millis")(millis) }}
        end
{%- endmacro %}

{% macro spark__timestamp_from_millis(millis) -%}
    timestamp_millis({{ millis }})
{%- endmacro %}

{#- Days and the remainder: `dateadd` takes integers. -#}
{% macro redshift__timestamp_from_millis(millis) -%}
    dateadd(
        millisecond,
        cast({{ millis }} - floor({{ millis }} / 86400000.0) * 86400000 as integer),
        dateadd(
            day,
            cast(floor({{ millis }} / 86400000.0) as integer),
            cast('1970-01-01 00:00:00' as timestamp)
        )
    )
{%- endmacro %}
