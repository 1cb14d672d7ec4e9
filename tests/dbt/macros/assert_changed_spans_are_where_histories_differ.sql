{#- Each thing has two histories. A version: what it says, from which day of January 2026
    and to which (32: it is current). Then the days from which and to which the two differ
    (0: from the beginning). -#}
{% set things = {
    "came": {
        "before": [],
        "now": [["a", 5, 32]],
        "differs": [[0, 32]],
    },
    "changed": {
        "before": [["a", 1, 32]],
        "now": [["a", 1, 9], ["b", 9, 32]],
        "differs": [[9, 32]],
    },
    "ended": {
        "before": [["a", 1, 32]],
        "now": [["a", 1, 9]],
        "differs": [[9, 32]],
    },
    "changed for a time gone by": {
        "before": [["a", 1, 9], ["c", 9, 32]],
        "now": [["a", 1, 5], ["b", 5, 9], ["c", 9, 32]],
        "differs": [[5, 9]],
    },
    "changed where it begins, and had a gap": {
        "before": [["a", 1, 9], ["b", 12, 32]],
        "now": [["z", 1, 9], ["b", 12, 32]],
        "differs": [[0, 9]],
    },
    "begins earlier": {
        "before": [["a", 9, 32]],
        "now": [["a", 3, 32]],
        "differs": [[0, 32]],
    },
    "lost what it said": {
        "before": [["a", 1, 32]],
        "now": [[none, 1, 32]],
        "differs": [[0, 32]],
    },
    "stayed": {
        "before": [[none, 1, 5], ["a", 5, 32]],
        "now": [[none, 1, 5], ["a", 5, 32]],
        "differs": [],
    },
} %}
{% set midnight_of = "cast('2026-01-%02d 00:00:00' as timestamp)" %}
{% set queries = {} %}
{% for side in ["before", "now"] %}
    {% set versions = [] %}
    {% for thing, histories in things.items() %}
        {% for says, first, end in histories[side] %}
            {% do versions.append({
                "thing": "'" ~ thing ~ "'",
                "says": "cast('" ~ says ~ "' as varchar(1))" if says
                else "cast(null as varchar(1))",
                "is_first_version": loop.first,
                "valid_from_at": midnight_of % first,
                "valid_to_at": midnight_of % end if end < 32
                else "cast(null as timestamp)",
            }) %}
        {% endfor %}
    {% endfor %}
    {% do queries.update({side: value_rows(versions)}) %}
{% endfor %}
{% set differences = [] %}
{% for thing, histories in things.items() %}
    {% for first, end in histories.differs %}
        {% do differences.append({
            "thing": "'" ~ thing ~ "'", "first_day": first, "end_day": end
        }) %}
    {% endfor %}
{% endfor %}

with

actual as (

    select
        thing,
        case when starts_at < cast('2026-01-01 00:00:00' as timestamp) then 0
        else extract(day from starts_at) end as first_day,
        case when ends_at > cast('2026-02-01 00:00:00' as timestamp) then 32
        else extract(day from ends_at) end as end_day
    from (
        {{ changed_spans(
            queries.before, queries.now, key="thing", attributes=["says"]
        ) }}
    ) as spans

),

expected as (

    {{ value_rows(differences) }}

)

select
    actual.thing as actual_thing,
    actual.first_day,
    actual.end_day,
    expected.thing as expected_thing
from actual
full outer join expected
    on
        actual.thing = expected.thing
        and actual.first_day = expected.first_day
        and actual.end_day = expected.end_day
where
    actual.thing is null
    or expected.thing is null
