{% macro recorded_read_point(relation, stream) -%}
    {%- if not asks_the_lake() -%}
        {{ return(9223372036854775807) }}
    {%- endif -%}
    {%- if not are_increments_recorded() -%}
        {{ return(0) }}
    {%- endif -%}
    {%- set found = lake_rows(
        "select max(read_to) as read_to from " ~ increment_tables().read_points
        ~ " where model_name = '" ~ relation.schema ~ "." ~ relation.identifier
        ~ "' and source_name = '" ~ stream ~ "'",
        [[9]],
    )[0][0] -%}
    {{ return((found or 0) | int) }}
{%- endmacro %}
