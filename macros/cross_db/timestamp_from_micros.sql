{#- Null for a timestamp on a day that `date_from_days` does not support. -#}
{% macro timestamp_from_micros(micros) -%}
    case
            when {{ micros }} between -210866803200000000 and 9223372022399999999
                then {{ adapter.dispatch("timestamp_from_micros")(micros) }}
        end
{%- endmacro %}

{% macro spark__timestamp_from_micros(micros) -%}
    timestamp_micros({{ micros }})
{%- endmacro %}

{#- Seconds and the remainder: `dateadd` takes integers. -#}
{% macro redshift__timestamp_from_micros(micros) -%}
    dateadd(
        microsecond,
        cast({{ micros }} - floor({{ micros }} / 1000000.0) * 1000000 as integer),
        {{ timestamp_from_epoch(
            "cast(floor(" ~ micros ~ " / 1000000.0) as bigint)"
        ) }}
    )
{%- endmacro %}
