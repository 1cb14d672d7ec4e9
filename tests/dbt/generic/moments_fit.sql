{#- Every date and timestamp in bronze has a value in staging. Returns the records with one that the
    engines cannot represent, such as PostgreSQL's `infinity`: it is null in staging, and bronze has
    the original value.

    columns: The unit of each column: days, millis or micros since 1970, or zoned for a text with a
    time zone. within: The struct of an envelope that has the columns. -#}
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
