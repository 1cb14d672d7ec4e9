{#- Everything that was sent is in the fact, and the fact has nothing else.

    records: The staged records of the stream. stream: Its name, as increments take it. key: The
    column that tells one thing from another in both. same: Columns that agree besides. -#}
{% test holds_all_of_stream(model, records, stream, key, same=[]) %}

{{ config(tags=["proof"]) }}

with

sent as (

    select distinct {{ ([key] + same) | join(", ") }}
    from {{ records }}
    where
        not is_tombstone
        -- Ingest may have gone on since the fact was built.
        and coalesce(_commit_id, 0) <= {{ recorded_read_point(model, stream) }}

),

-- One more record of a key may have been sent than the fact has, never one less.
held as (

    select * from {{ model }}

)

select
    sent.{{ key }} as sent_{{ key }},
    held.{{ key }} as held_{{ key }}
from sent
full outer join held
    on sent.{{ key }} = held.{{ key }}
where
    sent.{{ key }} is null
    or held.{{ key }} is null
    {% for column in same %}
        or sent.{{ column }} <> held.{{ column }}
    {% endfor %}

{% endtest %}
