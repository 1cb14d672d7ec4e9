"""Versions of captured rows, made by DuckDB: their order, their ends, and what re-opens them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2
import pytest

from sandbox.settings import PROJECT
from tests.python.unit.dbt.test_dbt_macros import SETTINGS, CompilerError, Macros, Table
from tests.python.unit.dbt.test_increment_macros import (
    FACT,
    Node,
    increment,
    macros,
    recorded_read,
)

RULES = PROJECT / "tests/dbt/macros/assert_histories_follow_the_log.sql"
STREAM = "moma.artists"
# A change: row, place in the log, hour of its commit, offset, commit of the ingest, kind.
CHANGES = [
    ("late", "20", 2, 1, 2, "update"),
    ("new", "50", 5, 2, 2, "update"),
    ("later", "60", 6, 3, 2, "update"),
    ("restarted", "05", 7, 4, 2, "update"),
    ("silent", "45", 8, 5, 2, "update"),
]
# A version that holds: row, since which place and hour, and up to where its changes were seen.
HELD = [
    ("late", "30c", 3, "30c"),
    ("later", "40c", 4, "40c"),
    ("restarted", "40c", 4, "40c"),
    # Its last change made no version.
    ("silent", "40c", 4, "50c"),
]


def context(
    restarts: Mapping[str, list[str]] | None = None,
    options: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    **other: Any,
) -> Macros:
    """The macros, with ``STREAM`` as the one captured table.

    Args:
        restarts: The variable ``log_restarts``.
        options: Of ``config.meta.ingest.captured``, besides its form and position.
        columns: Of the table in bronze.
        other: What else is in dbt's context.
    """
    captured = {"form": "flattened", "key": ["row_name"], "position": "lsn"}
    captured.update(options or {})
    source_name, name = STREAM.split(".")
    source = Node(
        source_name=source_name,
        name=name,
        schema="bronze",
        identifier=f"{source_name}__{name}",
        original_file_path="a.yml",
        columns=columns or {},
        config=SimpleNamespace(
            meta=SimpleNamespace(
                ingest=Captured(captured=Captured(captured)),
                get=lambda _name, _default: {"captured": captured},
            )
        ),
    )
    settings = {**SETTINGS, "log_restarts": restarts or {}}
    other.setdefault("model", SimpleNamespace(columns={}))
    return macros(graph={"nodes": {}, "sources": {"s": source}}, var=settings.get, **other)


class Captured(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self.get(name)


def engine() -> duckdb.DuckDBPyConnection:
    """DuckDB with the functions that Spark and Redshift have under other names."""
    made = duckdb.connect()
    made.execute(
        "create macro octet_length(text) as strlen(text);"
        "create macro sha2(text, bits) as sha256(text)"
    )
    return made


def lake(
    note: str = "kept", changes: Sequence[Any] = (), versions: Sequence[Any] = ()
) -> duckdb.DuckDBPyConnection:
    """Changes that are new, each with this note, and the current versions; more of both."""
    made = engine()
    for table, columns, rows in (
        (
            "changes",
            "row_name, source_position, hour, _kafka_offset, _commit_id, change_kind",
            [*CHANGES, *changes],
        ),
        ("history", "row_name, valid_from_position, hour, seen_to_position", [*HELD, *versions]),
    ):
        values = ", ".join(str(row) for row in rows)
        at = "make_timestamp(2026, 1, 1, hour, 0, 0)"
        times = (
            f"{at} as source_committed_at, {at} as _kafka_timestamp, 'T' as"
            " _kafka_topic_id, 0 as _kafka_partition, false as is_tombstone,"
            f" false as is_snapshot, 'kept' as title, '{note}' as note"
            if table == "changes"
            else f"{at} as seen_to_at, {at} as _kafka_timestamp,"
            " false as is_incomplete, true as is_current"
        )
        made.execute(
            f"create table {table} as select *, {times} from (values {values}) as rows ({columns})"
        )
    return made


def found(
    is_full_refresh: bool = False,
    note: str = "kept",
    changes: Sequence[Any] = (),
    versions: Sequence[Any] = (),
) -> Mapping[str | None, str]:
    """What the new changes bring, by row."""
    reads = {STREAM: {"after": 1, "to": 2}}
    query = context(this=Table("history")).findings_of_changes(
        increment(is_full_refresh=is_full_refresh, reads=reads),
        Table("changes"),
        STREAM,
        ["row_name"],
        ["title", "note"],
    )
    rows = lake(note, changes, versions).execute(query).fetchall()
    return {row[1]: row[0] for row in rows}


def test_every_rule_of_histories_gives_its_versions() -> None:
    """What `dbt build` asks both engines, asked of a third."""
    # Its text of given rows is every engine's.
    context = {"model": SimpleNamespace(columns={}), "modules": SimpleNamespace(re=re)}
    made = Macros(engine="redshift", context=context)
    environment = jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)
    names = ("value_rows", "versions_of_changes", "carried_values")
    query = environment.from_string(RULES.read_text()).render(
        {name: getattr(made, name) for name in names}
    )

    wrong = engine().execute(query).fetchall()

    assert wrong == []


def test_a_change_that_lies_before_what_was_seen_opens_its_row_again() -> None:
    assert found().get("late") == "late"
    assert not {"new", "later"} & found().keys()


def test_a_change_committed_later_that_lies_before_it_is_of_another_log() -> None:
    assert found().get("restarted") == "restart"


def test_a_log_that_restarts_behind_a_change_without_a_version_is_noticed() -> None:
    assert found().get("silent") == "restart"


def test_a_first_build_asks_for_restarts_alone() -> None:
    assert "late" not in found(is_full_refresh=True)


@pytest.mark.parametrize(
    ("seen_to", "is_full_refresh", "wanted"),
    [
        (None, False, {None: "reused"}),
        (4, False, {None: "reused"}),
        # An earlier increment has read the beginning of the transaction.
        (5, False, {"moved": "late"}),
        (5, True, {None: "reused"}),
    ],
)
def test_a_delete_after_a_create_in_its_transaction_may_be_of_another_row(
    seen_to: int | None, is_full_refresh: bool, wanted: Mapping[str | None, str]
) -> None:
    """Fails when the delete is not found, or its row read again although all of it is new."""
    changes = [("moved", "51", 5, 6, 2, "create"), ("moved", "52", 5, 7, 2, "delete")]
    versions = [("moved", "10c", seen_to, "10c")] if seen_to else []

    rows = found(is_full_refresh, changes=changes, versions=versions)

    assert {row: rows[row] for row in rows if row in (None, "moved")} == wanted


def test_changes_that_omit_a_value_are_found() -> None:
    assert found(note="__debezium_unavailable_value").get(None) == "other"
    assert None not in found()


TRUNCATE = ("truncate", "1", None, 0)
MANY_LATE_KEYS = [("late", str(key), None, 0) for key in range(2001)]


def classified(
    found: list[tuple[Any, ...]],
    has_truncates: bool,
    is_full_refresh: bool = False,
    late_truncates: int = 0,
    in_all: list[tuple[Any, ...]] | None = None,
) -> dict[str, Any]:
    """An increment whose query has found this.

    Args:
        has_truncates: What the last increment recorded.
        late_truncates: Of the truncates that were found.
        in_all: What a query of all changes finds after that.
    """
    left = [found, in_all]

    def answer(query: str) -> SimpleNamespace:
        return SimpleNamespace(rows=[[late_truncates]] if "late_count" in query else left.pop(0))

    made = context(
        this=Table("history"),
        model=SimpleNamespace(resource_type="model", columns={}),
        run_query=answer,
        target=SimpleNamespace(name="sandbox", schema="dev"),
    )
    recorded = recorded_read(FACT, STREAM, 1, 7, has_truncates=has_truncates)
    begun = increment(
        is_full_refresh=is_full_refresh,
        reads={STREAM: {"after": 1, "to": 2}},
        recorded={"reads": [recorded], "days": []},
    )
    made.classify_new_changes(begun, Table("changes"), STREAM, ["row_name"], ["note"])
    return begun


@pytest.mark.parametrize(
    ("found", "recorded", "is_full_refresh", "wanted"),
    [
        ([], False, False, False),
        ([], True, False, True),
        ([], True, True, False),
        ([TRUNCATE], False, False, True),
        ([TRUNCATE], False, True, True),
    ],
)
def test_a_statement_has_truncates_where_any_change_so_far_is_one(
    found: list[tuple[Any, ...]], recorded: bool, is_full_refresh: bool, wanted: bool
) -> None:
    assert classified(found, recorded, is_full_refresh)["has_truncates"] == wanted


@pytest.mark.parametrize(
    ("found", "is_full_refresh", "wanted"),
    [
        ([TRUNCATE], False, False),
        ([], False, False),
        ([], True, False),
        ([("other", None, None, 1)], False, True),
        ([("other", None, None, 1)], True, True),
        # All changes of the row are read again, and those before were not asked for.
        ([("late", "a", None, 0)], False, True),
        ([("late", "a", None, 0)], True, False),
    ],
)
def test_a_statement_fills_values_where_a_change_that_it_reads_may_omit_some(
    found: list[tuple[Any, ...]], is_full_refresh: bool, wanted: bool
) -> None:
    assert classified(found, False, is_full_refresh)["has_left_out"] == wanted


@pytest.mark.parametrize(
    ("found", "is_full_refresh", "wanted"),
    [
        ([], False, [False, True, None]),
        ([("reused", None, None, 0)], False, [True, True, None]),
        ([("reused", None, None, 0)], True, [True, True, None]),
        ([("late", "a", None, 0)], False, [True, False, "in ('a')"]),
        ([("late", "a", None, 0)], True, [False, False, None]),
    ],
)
def test_a_statement_has_reused_keys_where_it_reads_one(
    found: list[tuple[Any, ...]], is_full_refresh: bool, wanted: list[Any]
) -> None:
    made = classified(found, False, is_full_refresh)

    assert [made[name] for name in ("reuses_keys", "is_in_order", "keys_to_rebuild")] == wanted


def test_a_truncate_after_all_changes_that_were_applied_rebuilds_nothing() -> None:
    found = classified([TRUNCATE], False)

    assert found["is_truncated"]
    assert not found["is_full_refresh"]


@pytest.mark.parametrize(("found", "late_truncates"), [([TRUNCATE], 1), (MANY_LATE_KEYS, 0)])
@pytest.mark.parametrize(
    ("in_all", "wanted"),
    [
        ([], [False, True, False, False]),
        ([TRUNCATE], [False, True, False, True]),
        ([("reused", None, None, 1)], [True, True, True, False]),
        ([("late", "a", None, 0)], [False, False, False, False]),
    ],
)
def test_what_rebuilds_all_versions_has_findings_about_all_changes(
    found: list[tuple[Any, ...]],
    late_truncates: int,
    in_all: list[tuple[Any, ...]],
    wanted: list[bool],
) -> None:
    """A late truncate may change any version; of many late keys a statement is no cheaper."""
    made = classified(found, True, late_truncates=late_truncates, in_all=in_all)

    assert made["is_full_refresh"]
    assert made["keys_to_rebuild"] is None
    assert [
        made[name] for name in ("reuses_keys", "is_in_order", "has_left_out", "has_truncates")
    ] == wanted


def stopped_by_a_restart(**options: Any) -> str:
    """The message, where the source has these options."""
    rows = lake()
    made = context(
        options=options,
        this=Table("history"),
        model=SimpleNamespace(resource_type="model", columns={}),
        run_query=lambda query: SimpleNamespace(rows=rows.execute(query).fetchall()),
        target=SimpleNamespace(name="sandbox", schema="dev"),
    )
    begun = increment(reads={STREAM: {"after": 1, "to": 2}})

    with pytest.raises(CompilerError) as stop:
        made.classify_new_changes(begun, Table("changes"), STREAM, ["row_name"], [])
    return str(stop.value)


def test_a_log_that_restarted_stops_the_build() -> None:
    message = stopped_by_a_restart()

    assert re.search(r"database moma restarted.*`log_restarts`", message)
    assert "--select source:moma+" in message


def test_a_log_is_that_of_the_database_that_the_source_names() -> None:
    message = stopped_by_a_restart(database="moma_archive")

    assert "database moma_archive restarted" in message
    assert f"--select source:{STREAM}+" in message


@pytest.mark.parametrize(
    ("options", "database"), [({}, "moma"), ({"database": "archive"}, "archive")]
)
def test_the_name_of_a_stream_says_which_database_it_is_of(
    options: dict[str, Any], database: str
) -> None:
    sql = context(options=options).database_of_stream("stream")

    with duckdb.connect() as made:
        found = made.execute(f"select {sql} from (select '{STREAM}' as stream)")
        assert found.fetchall() == [(database,)]


def test_while_dbt_parses_and_tests_units_a_database_is_named_like_its_source() -> None:
    sql = macros(graph={}).database_of_stream("stream")

    assert sql == "split_part(stream, '.', 1)"


def test_restarts_of_a_database_are_those_of_its_streams() -> None:
    made = context(
        options={"database": "archive"},
        restarts={"moma": ["2026-01-01T00:00:00Z"], "archive": ["2026-02-01T00:00:00Z"]},
    )
    sql = made.position_across_restarts_of_streams("stream", "place", "moment")

    with duckdb.connect() as db:
        found = db.execute(
            f"select {sql} from (select '{STREAM}' as stream, '7' as place,"
            " timestamp '2026-01-15 00:00:00' as moment)"
        )
        assert found.fetchall() == [("000/7",)]


@pytest.mark.parametrize(
    "written",
    [
        ["2026-01-01T11:00:00Z", "2026-01-01 12:00:00Z"],
        ["2026-01-01 12:00:00.5Z", "2026-01-01T11:00:00Z"],
        ["2026-01-01 12:00:00Z", "2026-01-01T11:00:00.5Z"],
    ],
)
def test_restarts_are_in_the_order_of_their_instants(written: list[str]) -> None:
    sql = context(restarts={"moma": written}).position_across_restarts("moma", "'7'", "moment")

    with duckdb.connect() as db:
        found = db.execute(
            f"select {sql} from (values (timestamp '2026-01-01 10:30:00'),"
            " (timestamp '2026-01-01 11:30:00'), (timestamp '2026-01-01 12:30:00'))"
            " as moments (moment)"
        )
        assert [row[0] for row in found.fetchall()] == ["000/7", "001/7", "002/7"]
