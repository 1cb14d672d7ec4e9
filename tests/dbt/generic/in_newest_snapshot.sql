{#- Every current row of a history is in the newest snapshot of its table, or was changed later.
    Returns the rows whose deletes were in a lost part of the log: see docs/runbooks/lost-slot.md.

    changes: The staging model of the table. -#}
{% test in_newest_snapshot(model, changes) %}

{{ config(tags=["proof"]) }}

with

newest as (

    select max(source_position) as snapshot_position
    from {{ changes }}
    -- A chunk of an incremental snapshot shows only the rows in it.
    where change_kind = 'snapshot'

),

actual as (

    select * from {{ model }}
    where is_current and not is_deleted

)

select
    -- A version is named after its row and its place.
    substring(
        actual.version_key,
        1,
        length(actual.version_key) - length(actual.valid_from_position) - 1
    ) as row_key,
    actual.valid_from_at,
    actual.seen_to_position,
    newest.snapshot_position
from actual
inner join newest
    on actual.seen_to_position < newest.snapshot_position

{% endtest %}
