{#- The days that a model, itself or one it reads, recorded after an increment, and those of
    runs that nobody knows the end of. -#}
{% macro touch_days(increment, model_name, after, runs=()) -%}
    {%- for row in increment.recorded.days
        if row.model_name == model_name and not row.is_end
        and (row.increment_id > after or row.run_id in runs) -%}
        {%- if row.day is none and row.is_onwards -%}
            {%- do increment.update({"is_everything": true}) -%}
        {%- elif row.day is none -%}
            {%- do increment.update({"has_timeless": true}) -%}
        {%- else -%}
            {%- do touch_day(increment, row.day, row.is_onwards) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Touches one day. -#}
{% macro touch_day(increment, day, is_onwards=false) -%}
    {%- if day not in increment.days -%}
        {%- do increment.days.append(day) -%}
    {%- endif -%}
    {%- if is_onwards and (
        increment.onwards_from is none or day < increment.onwards_from
    ) -%}
        {%- do increment.update({"onwards_from": day}) -%}
    {%- endif -%}
{%- endmacro %}
