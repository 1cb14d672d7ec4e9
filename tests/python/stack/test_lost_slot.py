"""A replication slot that is lost with changes in it: found, named and put right by the runbook.

Fails when rows deleted while a replication slot was lost stay in a history unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from sandbox.services import postgres
from sandbox.services.connect import rest, wait_until_passed
from tests.python.conftest import Stack, own_stack
from tests.python.stack.conftest import wait_for

MISSING = "assert_every_row_of_moma_artists_is_in_newest_snapshot"
DIFFERENT = "assert_histories_hold_what_databases_hold"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A sandbox that captures PostgreSQL, for this test alone."""
    with own_stack(
        tmp_path_factory.mktemp("lost slot"), "kafka", "registry", "postgres", "connect"
    ) as found:
        yield found


def dbt(stack: Stack, target: Path, *command: str, check: bool = True) -> str:
    # fmt: off
    done = stack.run(
        "dbt", "--no-use-colors", "--log-path", str(target / "logs"), *command,
        "--target-path", str(target), "--vars", "reconciliation_grace_seconds: 0",
        check=check,
    )
    # fmt: on
    return done.stdout


def in_moma(stack: Stack, *statements: str) -> None:
    with closing(postgres.connect(stack.home, "moma", postgres.ADMIN)) as connection:
        connection.autocommit = True
        for statement in statements:
            connection.cursor().execute(statement)


def brought_up(stack: Stack, target: Path) -> dict[str, tuple[int, int]]:
    """Ingest and count all, build; by stream the newest count and its difference."""
    wait_until_passed(stack.home, "moma")
    stack.run("spark-ingest", "run", "moma", "--once")
    stack.run("spark-ingest", "reconcile", "moma")
    dbt(stack, target, "run", "--select", "+rpt_reconciliation")
    reported = stack.run(
        "sandbox", "sql", "--format", "json",
        "select stream_name, source_row_count, row_difference"
        " from marts.rpt_reconciliation where is_newest",
    )  # fmt: skip
    rows: list[dict[str, Any]] = json.loads(reported.stdout)
    return {row["stream_name"]: (row["source_row_count"], row["row_difference"]) for row in rows}


def versions_of_deleted(stack: Stack) -> list[tuple[bool, int]]:
    """Of the two deleted artists, how many versions say that they are gone, and how many not."""
    reported = stack.run(
        "sandbox", "sql", "--format", "json",
        "select is_deleted, count(*) as versions"
        " from intermediate.int_moma__artists_history where artist_id in (3, 7)"
        " group by is_deleted order by is_deleted",
    )  # fmt: skip
    return [(row["is_deleted"], row["versions"]) for row in json.loads(reported.stdout)]


def slot_is_gone(stack: Stack) -> bool:
    try:
        in_moma(stack, "select pg_drop_replication_slot('moma')")
    except psycopg2.errors.ObjectInUse:
        return False
    return True


@pytest.mark.long
def test_rows_deleted_while_a_slot_was_lost_are_found_named_and_put_right(
    stack: Stack, tmp_path: Path
) -> None:
    stack.run("sandbox", "produce", "moma", "--rows", "40")
    stack.run("spark-ingest", "create")
    before = brought_up(stack, tmp_path)
    assert before == {"moma.artists": (40, 0), "moma.artworks": (80, 0)}

    rest.request(stack.home, "PUT", "/connectors/moma/stop")
    wait_for(lambda: slot_is_gone(stack))
    in_moma(
        stack,
        "create schema aside",
        "create table aside.gone as select * from artists where artist_id in (3, 7)",
        "delete from artists where artist_id in (3, 7)",
        "update artists set name = 'Changed' where artist_id = 8",
        "insert into artists (artist_id, name) values (1000, 'New')",
    )
    rest.request(stack.home, "DELETE", "/connectors/moma/offsets")
    rest.request(stack.home, "PUT", "/connectors/moma/resume")
    in_moma(stack, "insert into artists (artist_id, name) values (1001, 'Later')")
    lost = brought_up(stack, tmp_path)

    assert lost == {"moma.artists": (40, 2), "moma.artworks": (80, 0)}
    named = dbt(stack, tmp_path, "show", "--select", MISSING, "--output", "json")
    shown = json.loads(named[named.index("{") :])["show"]
    assert sorted(row["row_key"] for row in shown) == ["3", "7"]
    failing = dbt(stack, tmp_path, "test", "--select", MISSING, DIFFERENT, check=False)
    assert "ERROR=2" in failing

    versions = versions_of_deleted(stack)
    in_moma(
        stack,
        # One transaction: nobody sees the rows, and the log has their deletes.
        "begin; insert into artists select * from aside.gone;"
        " delete from artists where artist_id in (3, 7); commit",
    )
    mended = brought_up(stack, tmp_path)

    assert mended == {"moma.artists": (40, 0), "moma.artworks": (80, 0)}
    # Put in again as they were, they make no version but the one that they are gone.
    assert versions == [(False, 2)]
    assert versions_of_deleted(stack) == [(False, 2), (True, 2)]
    passing = dbt(stack, tmp_path, "test", "--select", MISSING, DIFFERENT)
    assert f"PASS {MISSING}" in passing
    assert f"PASS {DIFFERENT}" in passing
