{% macro recorded_read_point(relation, stream) -%}
    {{ return(recorded_read(relation, stream).to) }}
{%- endmacro %}

{#- How far a mart has read a stream, and of which table; `is_recorded` tells a mart that has
    read nothing from one that nobody knows of. -#}
{% macro recorded_read(relation, stream) -%}
    {%- if not asks_the_lake() -%}
        {{ return({
            "to": 9223372036854775807, "table_uuid": none, "table_since": 0,
            "is_recorded": true,
        }) }}
    {%- endif -%}
    {%- set rows = [] -%}
    {%- if are_increments_recorded() -%}
        {%- set rows = lake_rows(
            "select read_to, coalesce(table_uuid, 'none') as table_uuid,"
            ~ " coalesce(table_since, 0) as table_since from "
            ~ increment_tables().read_points
            ~ " where model_name = '" ~ relation.schema ~ "." ~ relation.identifier
            ~ "' and source_name = '" ~ stream ~ "'",
            [[9, "none", 0]],
        ) -%}
    {%- endif -%}
    {%- if not rows -%}
        {{ return({"to": 0, "table_uuid": none, "table_since": 0, "is_recorded": false}) }}
    {%- endif -%}
    {{ return({
        "to": rows[0][0] | int,
        "table_uuid": none if rows[0][1] == "none" else rows[0][1],
        "table_since": rows[0][2] | int,
        "is_recorded": true,
    }) }}
{%- endmacro %}
