"""The three steps from changes to versions, each by itself, in DuckDB.

Fails when a change gets another place, a position two changes, or a version another beginning.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.python.unit.dbt.test_change_histories import context, engine
from tests.python.unit.dbt.test_dbt_macros import Macros

KEY, ATTRIBUTES = ["row_name"], ["name", "note"]
# A change: row, kind, position, minute of its commit, offset, commit of ingest, name.
Change = tuple[str, str, str | None, int, int, int, str | None]


def made() -> Macros:
    return context(model=SimpleNamespace(columns={}))


def changes(*rows: Change) -> str:
    """A query of changes, as `new_changes_and_current_versions` gives them."""
    texts = []
    for row, kind, position, minute, offset, commit, name in rows:
        is_current = kind == "current"
        at = f"timestamp '2026-01-01 00:{minute:02d}:00'"
        columns = {
            "row_name": f"'{row}'",
            "name": _text(name),
            "note": "'n'",
            "change_kind": f"'{kind}'",
            "is_deleted": kind in ("delete", "tombstone"),
            "is_tombstone": kind == "tombstone",
            "is_snapshot": kind == "snapshot",
            "source_committed_at": at,
            "source_position": _text(None if is_current else position),
            "_kafka_topic_id": "'T'",
            "_kafka_partition": 0,
            "_kafka_offset": offset,
            "_kafka_timestamp": at,
            "_ingested_at": at,
            "_commit_id": commit,
            "_is_current_version": is_current,
            "is_incomplete": False,
            "version_key": _text(f"{row}-version" if is_current else None),
            "valid_from_at": f"{at} - interval 1 minute" if is_current else "null",
            "valid_from_position": _text("00c" if is_current else None),
            "seen_to_position": _text(f"{position}c" if is_current else None),
            "seen_to_at": at if is_current else "null",
        }
        listed = ", ".join(f"{sql} as {column}" for column, sql in columns.items())
        texts.append(f"select {listed}")
    return " union all ".join(texts)


def _text(value: str | None) -> str:
    return "null::varchar" if value is None else f"'{value}'"


def ordered(*rows: Change, truncates: str | None = None) -> list[tuple[Any, ...]]:
    """Row, position and minute of each change, by row and position."""
    steps = made().ordered_changes(KEY, ATTRIBUTES, truncates)
    return _rows(
        f"with changes as ({changes(*rows)}), {steps}"
        " select row_name, _position, minute(_changed_at) from ordered_changes"
    )


def distinct(*rows: Change, carried: Any = None) -> list[tuple[Any, ...]]:
    """Row, position, commit, minute of its beginning and name of each change."""
    macros = made()
    steps = [
        macros.ordered_changes(KEY, ATTRIBUTES, None),
        macros.distinct_changes(KEY, carried or {}),
    ]
    name = carried["name"]["value"] if carried else "name"
    return _rows(
        f"with changes as ({changes(*rows)}), {', '.join(steps)} select row_name,"
        f" _position, _commit_id, minute(_since), {name}, _is_incomplete"
        " from distinct_changes"
    )


def versions(*rows: Change, tracked: list[str] = ATTRIBUTES) -> list[tuple[Any, ...]]:
    """Key, name, whether deleted, minutes of beginning and end of each version."""
    query = made().versions_of_changes(changes(*rows), KEY, ATTRIBUTES, tracked, {})
    return _rows(
        "select version_key, name, is_deleted, minute(valid_from_at),"
        f" minute(valid_to_at), seen_to_position from ({query})"
    )


def _rows(query: str) -> list[tuple[Any, ...]]:
    found = engine().execute(query).fetchall()
    return sorted(found, key=lambda row: tuple(map(str, row)))


def test_a_change_lies_where_the_log_says_and_a_tombstone_behind_it() -> None:
    assert ordered(
        ("a", "snapshot", "10", 1, 1, 1, "A"),
        ("a", "update", "20", 2, 2, 1, "B"),
        ("a", "delete", "30", 3, 3, 1, None),
        ("a", "tombstone", None, 9, 4, 1, None),
        ("lone", "tombstone", None, 9, 1, 1, None),
    ) == [("a", "10", 1), ("a", "20c", 2), ("a", "30c", 3), ("a", "30cb", None), ("lone", "", 9)]


def test_what_was_open_during_a_snapshot_lies_behind_it() -> None:
    assert ordered(
        ("a", "snapshot", "50", 5, 1, 1, "A"),
        ("a", "update", "30", 4, 2, 1, "in the snapshot"),
        ("a", "update", "40", 6, 3, 1, "committed behind it"),
    ) == [("a", "30c", 4), ("a", "50", 5), ("a", "50s40", 6)]


def test_a_truncate_deletes_the_rows_that_have_a_change_before_it() -> None:
    truncate = (
        "select '20' as source_position, timestamp '2026-01-01 00:07:00' as"
        " source_committed_at, 'T' as _kafka_topic_id, 0 as _kafka_partition,"
        " 9 as _kafka_offset, timestamp '2026-01-01' as _kafka_timestamp,"
        " timestamp '2026-01-01' as _ingested_at, 1 as _commit_id"
    )

    assert ordered(
        ("before", "create", "10", 1, 1, 1, "A"),
        ("behind", "create", "30", 8, 2, 1, "A"),
        truncates=truncate,
    ) == [("before", "10c", 1), ("before", "20c", 7), ("behind", "30c", 8)]


def test_of_one_position_the_record_that_was_read_last_stays() -> None:
    assert distinct(
        ("a", "update", "10", 1, 1, 1, "A"),
        ("a", "update", "10", 1, 2, 2, "B"),
        ("a", "update", "20", 2, 3, 2, "C"),
    ) == [("a", "10c", 2, 1, "B", False), ("a", "20c", 2, 2, "C", False)]


def test_what_the_current_version_has_seen_is_left_out() -> None:
    assert distinct(
        ("a", "current", "20", 2, 1, 1, "A"),
        ("a", "update", "20", 2, 2, 2, "seen"),
        ("a", "update", "30", 3, 3, 2, "B"),
    ) == [("a", "20c", 1, 2, "A", False), ("a", "30c", 2, 3, "B", False)]


def test_a_clock_that_steps_back_begins_nothing_earlier() -> None:
    assert [
        row[3]
        for row in distinct(
            ("a", "current", "10", 9, 1, 1, "A"),
            ("a", "update", "20", 5, 2, 2, "B"),
            ("a", "update", "30", 12, 3, 2, "C"),
        )
    ] == [9, 9, 12]


def test_a_value_that_is_left_out_is_that_of_the_last_change_that_says_it() -> None:
    out = "__debezium_unavailable_value"
    carried = made().carried_values(ATTRIBUTES, ["name"], [])

    found = distinct(
        ("a", "create", "10", 1, 1, 1, "A"),
        ("a", "update", "20", 2, 2, 1, out),
        ("a", "delete", "30", 3, 3, 1, None),
        ("a", "update", "40", 4, 4, 1, out),
        carried=carried,
    )

    assert [(row[1], *row[4:]) for row in found] == [
        ("10c", "A", False),
        ("20c", "A", False),
        ("30c", None, False),
        ("40c", None, True),
    ]


def test_a_version_ends_where_the_next_begins_and_a_delete_keeps_the_values() -> None:
    assert versions(
        ("a", "create", "10", 1, 1, 1, "A"),
        ("a", "update", "20", 2, 2, 1, "A"),
        ("a", "update", "30", 3, 3, 1, "B"),
        ("a", "delete", "40", 4, 4, 1, "made up"),
    ) == [
        ("a-10c", "A", False, 1, 3, None),
        ("a-30c", "B", False, 3, 4, None),
        ("a-40c", "B", True, 4, None, "40c"),
    ]


def test_what_is_not_tracked_is_taken_into_the_version_that_is_there() -> None:
    assert versions(
        ("a", "create", "10", 1, 1, 1, "A"), ("a", "update", "20", 2, 2, 1, "B"), tracked=["note"]
    ) == [("a-10c", "B", False, 1, None, "20c")]


def test_the_current_version_keeps_its_key_and_its_beginning() -> None:
    assert versions(("a", "current", "20", 2, 1, 1, "A"), ("a", "update", "30", 3, 2, 2, "B")) == [
        ("a-30c", "B", False, 3, None, "30c"),
        ("a-version", "A", False, 1, 3, None),
    ]
