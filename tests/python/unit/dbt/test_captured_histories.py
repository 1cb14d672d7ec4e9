"""Every history is compared: with its database, and with the newest snapshot of its table."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2

from docs.generate.domain_pages import Manifest
from sandbox.settings import PROJECT


def histories(manifest: Manifest) -> set[str]:
    """Those of a log. Rows that a query read have no place in one, and no snapshot."""
    return {
        key
        for key, node in manifest["nodes"].items()
        if node["resource_type"] == "model"
        and "change_history(" in node["raw_code"]
        and form(manifest, key) != "rows"
    }


def form(manifest: Manifest, history: str) -> str:
    """What a record of the table behind a history holds."""
    (staging,) = manifest["nodes"][history]["depends_on"]["nodes"]
    (stream,) = manifest["nodes"][staging]["depends_on"]["nodes"]
    return str(manifest["sources"][stream]["config"]["meta"]["ingest"]["captured"]["form"])


def test_every_history_is_compared_with_its_database(manifest: Manifest) -> None:
    moved = manifest["nodes"]["model.millrace.int_ops__captured_rows_moved"]

    # One that is missing is to be added to the model's list.
    assert histories(manifest)
    assert set(moved["depends_on"]["nodes"]) == histories(manifest)


def test_every_history_is_compared_with_the_newest_snapshot_of_its_changes(
    manifest: Manifest,
) -> None:
    read = {
        node["attached_node"]: set(node["depends_on"]["nodes"])
        for node in manifest["nodes"].values()
        if (node.get("test_metadata") or {}).get("name") == "in_newest_snapshot"
    }

    assert read == {
        history: {history, *manifest["nodes"][history]["depends_on"]["nodes"]}
        for history in histories(manifest)
    }


def test_what_is_live_is_read_by_no_model(manifest: Manifest) -> None:
    live = {
        key for key, node in manifest["nodes"].items() if "live_state(" in node.get("raw_code", "")
    }

    assert live
    for key in live:
        assert key.endswith("_live")
        readers = manifest["child_map"][key]
        assert {name.partition(".")[0] for name in readers} <= {"test", "exposure"}


def test_staging_of_events_has_unit_tests(manifest: Manifest) -> None:
    """dbt-bouncer names the folders of events; it would pass one that it does not know."""
    tested = {
        one for each in manifest["unit_tests"].values() for one in each["depends_on"]["nodes"]
    }
    untested = {
        node["name"]
        for key, node in manifest["nodes"].items()
        if node["resource_type"] == "model"
        and node["path"].startswith("staging/")
        and key not in tested
        and "captured_changes(" not in node["raw_code"]
    }

    assert untested == set()


def generic_test(name: str, *arguments: Any, **context: Any) -> str:
    """The query of a generic test."""
    text = (PROJECT / "tests/dbt/generic" / f"{name}.sql").read_text()
    (macro,) = re.findall(r"{% test (.*){% endtest %}", text, re.DOTALL)
    made = jinja2.Environment().from_string(
        f"{{% macro {macro}{{% endmacro %}}", globals={"config": lambda **_: "", **context}
    )
    return str(vars(made.module)[name](*arguments))


def test_keys_that_redshift_takes_for_one_are_named() -> None:
    query = generic_test(
        "text_keys_stay_apart", "history", ["code", "part"], target=SimpleNamespace(type="redshift")
    )
    with duckdb.connect() as lake:
        lake.execute(
            "create macro octet_length(text) as strlen(text);"
            "create table history as from (values ('A', 'x'), ('A ', 'x'), ('A', 'x'),"
            " ('B ', 'x'), (' B', 'x'), ('C', 'x'), ('C', 'y'), ('D', 'x '), ('D', 'x'))"
            " as rows (code, part)"
        )
        assert sorted(lake.sql(query).fetchall()) == [("A", "x"), ("D", "x")]


def without_snapshot(held: str, changes: str) -> list[str]:
    """The keys of the rows that the test names, of rows of a history and of changes."""
    query = generic_test("in_newest_snapshot", "held", "changes")
    with duckdb.connect() as lake:
        lake.execute(
            "create table held (version_key text, valid_from_position text,"
            " seen_to_position text, is_current boolean, is_deleted boolean,"
            " valid_from_at timestamp);"
            "create table changes (source_position text, change_kind text)"
        )
        for table, rows in (("held", held), ("changes", changes)):
            if rows:
                lake.execute(f"insert into {table} values {rows}")
        return sorted(row[0] for row in lake.sql(query).fetchall())


HELD = ", ".join(
    f"({row}, timestamp '2026-01-01 00:00:00')"
    for row in (
        "'gone-a-01c', '01c', '01c', true, false",
        "'gone since-02c', '02c', '03', true, false",
        "'earlier version-02c', '02c', '02c', false, false",
        "'deleted-02c', '02c', '02c', true, true",
        "'in it-02c', '02c', '05', true, false",
        "'new-06c', '06c', '06c', true, false",
    )
)


def test_a_held_row_that_was_seen_before_the_newest_snapshot_alone_is_named() -> None:
    changes = "('02', 'snapshot'), ('05', 'snapshot'), ('06', 'update')"

    assert without_snapshot(HELD, changes) == ["gone since", "gone-a"]


def test_without_a_newer_snapshot_no_row_is_named() -> None:
    assert without_snapshot(HELD, "('09', 'update')") == []
    assert without_snapshot(HELD, "('09', 'snapshot chunk')") == []
    assert without_snapshot(HELD, "('01', 'snapshot')") == []
