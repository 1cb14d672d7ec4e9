{#- The fact has every record that was sent, and no other.

    records: The staging model of the stream. stream: The stream, such as `pagila.sales`. key: The
    key column of both. same: Other columns that must be equal. -#}
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
actual as (

    select * from {{ model }}

)

select
    sent.{{ key }} as sent_{{ key }},
    actual.{{ key }} as actual_{{ key }}
from sent
full outer join actual
    on sent.{{ key }} = actual.{{ key }}
where
    sent.{{ key }} is null
    or actual.{{ key }} is null
    {% for column in same %}
        or sent.{{ column }} <> actual.{{ column }}
    {% endfor %}

{% endtest %}
