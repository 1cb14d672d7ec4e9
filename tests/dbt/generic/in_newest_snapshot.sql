{#- A row that a history holds is in the newest snapshot of its table, or changed later. A failure
    names the rows whose deletes were in a part of the log that is lost; what to do about them
    is in docs/runbooks/lost-slot.md.

    changes: The staging model of the table. -#}
{% test in_newest_snapshot(model, changes) %}

{{ config(tags=["proof"]) }}

with

newest as (

    select max(source_position) as snapshot_position
    from {{ changes }}
    -- A chunk of an incremental snapshot says nothing of rows that are not in it.
    where change_kind = 'snapshot'

),

held as (

    select * from {{ model }}
    where is_current and not is_deleted

)

select
    -- A version is named after its row and its place.
    substring(
        held.version_key,
        1,
        length(held.version_key) - length(held.valid_from_position) - 1
    ) as row_key,
    held.valid_from_at,
    held.seen_to_position,
    newest.snapshot_position
from held
inner join newest
    on held.seen_to_position < newest.snapshot_position

{% endtest %}
