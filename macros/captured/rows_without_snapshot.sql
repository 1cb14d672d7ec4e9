{#- The rows that a history holds and that the newest snapshot of their table does not have: all that
    is known of them lies before it. Their deletes were in a part of the log that is lost. -#}
{% macro rows_without_snapshot(stream) -%}
    {%- set source_name, table_name = stream.split(".") -%}
select
    cast('{{ stream }}' as varchar(256)) as stream_name,
    -- A version is named after its row and its place.
    substring(
        held.version_key,
        1,
        length(held.version_key) - length(held.valid_from_position) - 1
    ) as row_key,
    held.valid_from_at,
    held.seen_to_position,
    snapshots.snapshot_position
from {{ ref(name_of_history(stream)) }} as held
inner join (
    select max(source_position) as snapshot_position
    from {{ ref("stg_" ~ source_name ~ "__" ~ table_name) }}
    where is_snapshot
) as snapshots
    on held.seen_to_position < snapshots.snapshot_position
where held.is_current and not held.is_deleted
{%- endmacro %}
