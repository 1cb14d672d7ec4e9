{#- Staging has a moment for each that bronze has. A row that is named has one that no engine has,
    such as PostgreSQL's infinity: it is null in staging, and bronze has what came.

    columns: By column what its values count: days, millis, micros; or that they are texts with a
    time zone, zoned. within: The struct that has them, of an envelope. -#}
{% test moments_fit(model, columns, within=none) %}

{{ config(severity="warn") }}

{%- set types = {"days": "int", "millis": "bigint", "micros": "bigint", "zoned": "string"} -%}
{%- set moments = [] -%}
{%- for column, unit in columns.items() -%}
    {%- set value = nested_field("records", within, column, types[unit]) if within
        else "records." ~ column -%}
    {%- if unit == "days" -%}
        {%- set moment = date_from_days(value) -%}
    {%- elif unit == "millis" -%}
        {%- set moment = timestamp_from_millis(value) -%}
    {%- elif unit == "micros" -%}
        {%- set moment = timestamp_from_micros(value) -%}
    {%- else -%}
        {%- set moment = timestamp_from_zoned(value) -%}
    {%- endif -%}
    {%- do moments.append("(" ~ value ~ " is not null and " ~ moment ~ " is null)") -%}
{%- endfor %}

select
    records._kafka_topic,
    records._kafka_partition,
    records._kafka_offset
from {{ model }} as records
where
    {{ moments | join("\n    or ") }}

{% endtest %}
