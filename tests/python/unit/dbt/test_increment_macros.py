"""What the macros of increments decide: days, ranges, bounds, what is recorded."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros, Table

FACT = "marts.fct_sales"
PARENT = "marts.fct_parent"


# As `code_checksum` has them of the nodes of `SimpleGraph`.
BY_THIS_CODE = {
    "fct_parent": "",
    "regions": "c" * 12,
    "stg_sales": hashlib.md5(b"select 1").hexdigest()[:12],
}


class SimpleGraph(dict[str, Any]):
    """A seed and a view below the fact, and its parent that is incremental."""

    def __init__(self) -> None:
        super().__init__(
            sources={},
            nodes={
                "regions": node("regions", "seed"),
                "stg_sales": node("stg_sales", "view", "regions"),
                "fct_parent": node("fct_parent", "incremental", "stg_sales"),
                "fct_sales": node("fct_sales", "incremental", "stg_sales", "fct_parent"),
                "dim_regions": node("dim_regions", "table", "stg_sales"),
            },
        )


class Node(dict[str, Any]):
    __getattr__ = dict.__getitem__


def node(name: str, materialized: str, *parents: str, code: str = "select 1") -> Node:
    return Node(
        unique_id=name,
        name=name,
        alias=name,
        package_name="millrace",
        database="dev",
        schema="marts",
        resource_type="seed" if materialized == "seed" else "model",
        raw_code=code,
        checksum=SimpleNamespace(checksum="c" * 64),
        config=SimpleNamespace(
            materialized=materialized,
            incremental_strategy="rewrite" if materialized == "incremental" else None,
        ),
        depends_on=SimpleNamespace(nodes=parents, macros=[]),
    )


def macros(
    built: Mapping[str, str] = BY_THIS_CODE,
    settings: Mapping[str, Any] | None = None,
    engine: str = "spark",
    **context: Any,
) -> Macros:
    """The macros, while ``fct_sales`` is built.

    Args:
        built: What stands in the lake, with the checksum of the code that it was built from.
        settings: The variables that differ from dbt_project.yml.
        engine: Whose SQL they render.
        context: What else is another in dbt's context.
    """
    relation = SimpleNamespace(create=lambda schema, identifier: f"{schema}.{identifier}")

    def get_relation(_database: str, schema: str, name: str) -> str | None:
        return f"{schema}.{name}" if name in built else None

    def run_query(query: str) -> Any:
        found = re.match(r"show tblproperties marts\.(\w+) ", query)
        assert found is not None
        return SimpleNamespace(rows=[["millrace.code", built[found[1]]]])

    return Macros(
        engine,
        settings=settings,
        context={
            "adapter": SimpleNamespace(get_relation=get_relation),
            "run_query": run_query,
            "api": SimpleNamespace(Relation=relation),
            "graph": SimpleGraph(),
            "invocation_id": "one",
            "modules": SimpleNamespace(datetime=datetime, re=re),
            "flags": SimpleNamespace(EMPTY=False, FULL_REFRESH=False, WHICH="run"),
            "invocation_args_dict": {},
            "this": SimpleNamespace(schema="marts", identifier="fct_sales"),
            "model": SimpleNamespace(
                resource_type="model",
                unique_id="fct_sales",
                name="fct_sales",
                config=SimpleNamespace(materialized="incremental", incremental_strategy="rewrite"),
            ),
            "fromjson": json.loads,
            "tojson": json.dumps,
            "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
            "project_name": "millrace",
            "selected_resources": ["fct_sales"],
            **context,
        },
    )


def increment(**other: Any) -> dict[str, Any]:
    """One without affected days; ``other`` replaces some."""
    return {
        "model_name": FACT,
        "time_column": "paid_at",
        "settings": "{}",
        "is_full_refresh": False,
        "has_undated": False,
        "days": [],
        "onwards_from": None,
        "repartitioned": None,
        "id": 8,
        "committed": 7,
        "code": "{}",
        "unfinished": {},
        "is_intent_recorded": False,
        "reads": {},
        "follows": [],
        "recorded": {"reads": [], "days": []},
        **other,
    }


def recorded_day(
    day: date | None,
    increment_id: int,
    model: str = PARENT,
    is_onwards: bool = False,
    *,
    is_end: bool = False,
    run_id: str = "none",
) -> dict[str, Any]:
    return {
        "model_name": model,
        "day": day,
        "is_onwards": is_onwards,
        "is_end": is_end,
        "increment_id": increment_id,
        "run_id": run_id,
    }


def recorded_read(
    model: str, source: str, read_to: int, increment_id: int, settings: str = "{}", **other: Any
) -> dict[str, Any]:
    return {
        "model_name": model,
        "source_name": source,
        "read_to": read_to,
        "increment_id": increment_id,
        "settings": settings,
        "table_uuid": None,
        "code": None,
        "unfinished": "{}",
        "table_since": 0,
        "has_truncates": True,
        **other,
    }


def kept(condition: str, times: list[str | None]) -> list[str | None]:
    """Which times a condition on ``paid_at`` keeps."""
    condition = condition.replace("cast(", "try_cast(")
    with duckdb.connect() as connection:
        connection.execute("create table t (said varchar, paid_at timestamp)")
        for time in times:
            connection.execute("insert into t values ($1, try_cast($1 as timestamp))", [time])
        rows = connection.execute(f"select said from t where {condition}").fetchall()
    return [row[0] for row in rows]


def test_days_that_follow_each_other_are_one_range() -> None:
    affected = increment(
        days=[date(2026, 1, 3), date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 9)]
    )

    assert macros().day_ranges(affected) == [
        [date(2026, 1, 1), date(2026, 1, 4)],
        [date(2026, 1, 9), date(2026, 1, 10)],
    ]


def test_ranges_that_reach_further_meet() -> None:
    affected = increment(days=[date(2026, 1, 1), date(2026, 1, 3)])

    assert macros().day_ranges(affected, 1) == [[date(2026, 1, 1), date(2026, 1, 5)]]


def test_a_day_with_all_after_it_has_no_end_and_swallows_the_rest() -> None:
    affected = increment(
        days=[date(2026, 1, 1), date(2026, 1, 5), date(2026, 3, 1)], onwards_from=date(2026, 1, 5)
    )

    assert macros().day_ranges(affected) == [
        [date(2026, 1, 1), date(2026, 1, 2)],
        [date(2026, 1, 5), None],
    ]


def test_very_many_ranges_become_one_that_spans_them() -> None:
    days = [date(2026, 1, 1) + datetime.timedelta(days=2 * n) for n in range(101)]

    assert macros().day_ranges(increment(days=days)) == [
        [days[0], days[-1] + datetime.timedelta(days=1)]
    ]


def days_in(ranges: list[list[date]]) -> set[date]:
    return {
        first + datetime.timedelta(days=step)
        for first, end in ranges
        for step in range((end - first).days)
    }


@pytest.mark.parametrize("days_before", [0, 1, 2, 7])
@pytest.mark.parametrize(("count", "every"), [(40, 3), (120, 2), (120, 3), (120, 9)])
def test_whatever_is_deleted_is_read_again(count: int, every: int, days_before: int) -> None:
    """Two blocks of scattered days of a parent, far from each other."""
    step = datetime.timedelta(days=every)
    blocks = [date(2025, 1, 1), date(2025, 1, 1) + count // 2 * step]
    blocks[1] += datetime.timedelta(days=20)
    days = {
        block + at * step - datetime.timedelta(days=back)
        for block in blocks
        for at in range(count // 2)
        for back in range(days_before + 1)
    }
    affected, context = increment(days=sorted(days)), macros()

    deleted = days_in(context.day_ranges(affected))
    read = days_in(context.day_ranges(affected, days_before))

    assert set(affected["days"]) <= deleted
    for later in range(days_before + 1):
        assert {day + datetime.timedelta(days=later) for day in deleted} <= read


def test_a_condition_keeps_the_affected_days_to_their_last_moment() -> None:
    condition = macros().in_affected_days(
        increment(days=[date(2026, 1, 2), date(2026, 1, 5)]), "paid_at"
    )

    times: list[str | None] = [
        "2026-01-01 23:59:59.999999",
        "2026-01-02 00:00:00",
        "2026-01-02 23:59:59.999999",
        "2026-01-03 00:00:00",
        "2026-01-05 12:00:00",
        None,
    ]
    assert kept(condition, times) == [times[1], times[2], times[4]]


def test_times_that_are_missing_or_beyond_the_calendar_are_kept_together() -> None:
    condition = macros().in_affected_days(increment(has_undated=True), "paid_at")

    times: list[str | None] = [
        None,
        "0001-12-31 23:59:59",
        "0002-01-01 00:00:00",
        "9998-12-31 23:59:59",
        "9999-01-01 00:00:00",
    ]
    assert kept(condition, times) == [None, times[1], times[4]]
    day = macros().day_text("paid_at")
    assert "else 'none'" in day
    assert macros().is_dated("paid_at") in day


def test_nothing_affected_keeps_nothing_and_everything_keeps_all() -> None:
    times: list[str | None] = ["2026-01-01 00:00:00", None]

    nothing = macros().in_affected_days(increment(), "paid_at")
    everything = macros().in_affected_days(increment(is_full_refresh=True), "paid_at")

    assert kept(nothing, times) == []
    assert kept(everything, times) == times


def test_new_rows_lie_between_literals() -> None:
    reads = {"pagila.sales": {"after": 3, "to": 9}}

    some = macros().new_rows(increment(reads=reads), "pagila.sales")
    every = macros().new_rows(increment(reads=reads, is_full_refresh=True), "pagila.sales")

    assert some == "_commit_id > 3 and _commit_id <= 9"
    assert every == "coalesce(_commit_id, 0) <= 9"


# Of a view: id, day in January, commit. 1 and 2 were read, 9 came after the read point.
RECORDS = [(1, 1, 1), (2, 2, 1), (3, 3, 2), (3, 1, 3), (4, 4, 9)]
# What the model has: id, day, commit, whether it has moved.
KEPT = [(1, 1, 1, False), (2, 2, 1, False), (3, 3, 2, False), (5, 1, 3, False)]


def rows_of_increment(
    kept: list[tuple[int, int, int, bool]], key: str | None = None, **begun: Any
) -> list[dict[str, Any]]:
    """What `new_and_existing_rows` finds in the lake, in order of id and commit."""
    lake = duckdb.connect()
    for table, columns, rows in (
        ("stg_sales", "city, id, day, _commit_id", [("x", *row) for row in RECORDS]),
        ("fct_sales", "region, id, day, _commit_id, has_moved", [("x", *r) for r in kept]),
    ):
        values = ", ".join(str(row) for row in rows)
        lake.execute(
            f"create table {table} as select *, 'one' as _kafka_topic_id, 0 as"
            " _kafka_partition, make_timestamp(2026, 1, day, 10, 0, 0) as paid_at"
            f" from (values {values}) as rows ({columns})"
        )
    shared = ["id", "paid_at", "_commit_id", "_kafka_topic_id", "_kafka_partition"]
    graph = SimpleGraph()
    graph["nodes"]["stg_sales"]["columns"] = dict.fromkeys(["city", *shared])
    context = macros(
        graph=graph,
        this=Table("fct_sales"),
        model=SimpleNamespace(
            resource_type="model",
            depends_on=SimpleNamespace(nodes=["source.pagila.sales", "stg_sales"]),
            columns=dict.fromkeys(["region", *shared, "has_moved"]),
        ),
        run_query=lambda query: SimpleNamespace(rows=lake.execute(query).fetchall()),
        var=lambda _name, default=None: default,
    )
    reads = {"pagila.sales": {"after": 2, "to": 5}}
    query = context.new_and_existing_rows(
        increment(reads=reads, **begun), Table("stg_sales"), "pagila.sales", key
    )
    found = lake.execute(query)
    names = [column[0] for column in found.description or []]
    return sorted(
        (dict(zip(names, row, strict=True)) for row in found.fetchall()),
        key=lambda row: (row["id"], row["_commit_id"], row.get("was_moved", 0)),
    )


def test_an_increment_takes_new_rows_and_those_its_days_have_but_not_a_dead_runs() -> None:
    rows = rows_of_increment(KEPT)

    assert [(row["id"], row["_commit_id"]) for row in rows] == [(1, 1), (3, 3)]


def test_a_first_build_takes_all_rows_up_to_the_read_point() -> None:
    rows = rows_of_increment(KEPT, is_full_refresh=True)

    assert [row["_commit_id"] for row in rows] == [1, 1, 2, 3]


def test_rows_have_the_columns_that_the_view_and_the_model_describe() -> None:
    rows = rows_of_increment(KEPT)

    shared = ["id", "paid_at", "_commit_id", "_kafka_topic_id", "_kafka_partition"]
    assert list(rows[0]) == shared


@pytest.mark.parametrize(
    ("has_moved", "of_third"), [(False, [(2, 0), (3, 0)]), (True, [(2, 0), (2, 1), (3, 0)])]
)
def test_with_a_key_a_row_that_has_moved_comes_with_all_its_records(
    *, has_moved: bool, of_third: list[tuple[int, int]]
) -> None:
    """It alone does not show which of them is the last."""
    kept = [(*row[:3], has_moved and row[0] == 3) for row in KEPT]

    rows = rows_of_increment(kept, key="id")

    # The new record lies on another day than the row: both are rewritten.
    found = [(row["_commit_id"], row["was_moved"]) for row in rows if row["id"] == 3]
    assert found == of_third
    assert [row["id"] for row in rows if row["id"] != 3] == [1, 5]


def test_a_child_rewrites_what_changed_in_its_parent_since_it_read_it() -> None:
    affected = increment(
        recorded={
            "reads": [
                recorded_read(PARENT, "pagila.sales", 9, 5),
                recorded_read(FACT, PARENT, 3, 7),
            ],
            "days": [
                recorded_day(date(2026, 1, 1), 3),
                recorded_day(date(2026, 1, 2), 4),
                # Begun and not finished: rewritten, and once more when it is.
                recorded_day(date(2026, 1, 8), 6),
            ],
        }
    )
    parent = SimpleNamespace(schema="marts", identifier="fct_parent")

    macros().add_affected_days_of(affected, parent, days_before=1)

    assert sorted(affected["days"]) == [
        date(2026, 1, 1),
        date(2026, 1, 2),
        date(2026, 1, 7),
        date(2026, 1, 8),
    ]
    assert affected["reads"] == {
        PARENT: {"after": 3, "to": 5, "table_uuid": None, "table_since": 0}
    }


@pytest.mark.parametrize(
    ("days", "arguments"),
    [
        ([recorded_day(None, 4, is_onwards=True)], {}),
        ([recorded_day(None, 4)], {"days_before": 1}),
        ([recorded_day(None, 4)], {"is_onwards": True}),
        ([recorded_day(date(2026, 1, 1), 4)], {"has_same_days": False}),
    ],
    ids=["rebuilt parent", "timeless windows", "timeless totals", "another clock"],
)
def test_a_child_is_rewritten_whole_when_days_are_unknown(
    days: list[dict[str, Any]], arguments: dict[str, Any]
) -> None:
    affected = increment(
        recorded={
            "reads": [
                recorded_read(PARENT, "pagila.sales", 9, 4),
                recorded_read(FACT, PARENT, 3, 7),
            ],
            "days": days,
        }
    )
    parent = SimpleNamespace(schema="marts", identifier="fct_parent")

    macros().add_affected_days_of(affected, parent, **arguments)

    assert affected["is_full_refresh"]


def test_a_parent_that_recorded_nothing_is_refused() -> None:
    parent = SimpleNamespace(schema="marts", identifier="fct_parent")

    with pytest.raises(CompilerError, match=r"dbt run --full-refresh --select fct_parent\+"):
        macros().add_affected_days_of(increment(), parent)


def test_rows_of_which_no_read_point_is_recorded_stop_the_run() -> None:
    with pytest.raises(
        CompilerError,
        match=r"no read point in state.read_points: run "
        r"`dbt run --full-refresh --select fct_sales\+`",
    ):
        macros().assert_increment_fits(increment())
