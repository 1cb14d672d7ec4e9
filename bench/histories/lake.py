"""The history of a captured table: built from a snapshot, then grown and disturbed."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.histories import records
from bench.histories.results import Step
from bench.increments.table_use import Query
from bench.increments.worker import Worker, WrongResult, counted, create_tables
from sandbox.settings import Home

MODEL = "int_pagila__address_history"
HISTORY = f"intermediate.{MODEL}"
COMMIT_ROWS = 1_000_000


class Lake(Worker):
    """One history and the process that works on it.

    Args:
        folder: For all that belongs to it; emptied.
        rows: Rows of the captured table.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        super().__init__(folder)
        self.rows = rows
        self._commits = 0
        self._offset = 0
        self._updates = 0

    def fill(self) -> float:
        """Make the captured table's snapshot in bronze; the seconds it took."""
        seconds = self.do(_fill, self.home, self.rows)
        self._commits = -(-self.rows // COMMIT_ROWS)
        self._offset = self.rows
        return seconds

    def build(self) -> Step:
        """Build the history from the whole snapshot."""
        return self.do(_run, self.home, "full build", 0, ["build", *_BUILT])

    def layout(self) -> tuple[int, int]:
        """Files of the current versions, and their bytes."""
        return self.do(_layout)

    def set_mode(self, mode: str) -> None:
        """Let statements replace rows by copying files, or by files of deletes."""
        self.do(_set_mode, mode)

    def grow(self, kind: str, changes: int, times: int = 1) -> Step:
        """Commit new updates to bronze, and run the increment, which alone is measured.

        Args:
            kind: How the results name it.
            changes: How many rows are updated.
            times: How often each record is sent.
        """
        first = self.rows + self._updates
        self._updates += changes
        return self._send(kind, first, first + changes, times)

    def send_again(self, kind: str, changes: int) -> Step:
        """The same with the last updates, which the history has read."""
        end = self.rows + self._updates
        return self._send(kind, end - changes, end, 1)

    def truncate_late(self, kind: str) -> Step:
        """The same with a TRUNCATE of before all updates."""
        self._commits += 1
        self.do(_append_truncate, self.rows, self._offset, self._commits)
        self._offset += 1
        return self.do(_run, self.home, kind, 1, ["run", *_SELECTED])

    def refresh(self, kind: str) -> Step:
        """Make the history anew from all of bronze."""
        return self.do(_run, self.home, kind, 0, ["run", *_SELECTED, "--full-refresh"])

    def check(self, *, is_truncated: bool = False) -> None:
        """Compare the history with what was sent.

        Args:
            is_truncated: Whether the late TRUNCATE is among it.

        Raises:
            WrongResult: The history has lost or doubled a version.
        """
        updated = min(self._updates, self.rows)
        wanted = (
            self.rows + self._updates + (self.rows if is_truncated else 0),
            self.rows,
            self.rows - updated if is_truncated else 0,
        )
        self.do(_check, wanted)

    def _send(self, kind: str, first: int, end: int, times: int) -> Step:
        self._commits += 1
        span = records.Span(first, end, self._offset, times)
        self.do(_append, self.rows, span, self._commits)
        count = (end - first) * times
        self._offset += count
        return self.do(_run, self.home, kind, count, ["run", *_SELECTED])


_SELECTED = ["--select", MODEL]
_BUILT = [*("--select", f"+{MODEL}"), *("--exclude-resource-type", "test", "unit_test")]


def _fill(home: Home, rows: int) -> float:
    begun = time.monotonic()
    spark = SparkSession.builder.getOrCreate()
    create_tables(spark, home, [records.TABLE])
    for commit_id, first in enumerate(range(0, rows, COMMIT_ROWS), start=1):
        span = records.Span(first, min(first + COMMIT_ROWS, rows), first)
        _append(rows, span, commit_id)
    return time.monotonic() - begun


def _append(rows: int, span: records.Span, commit_id: int) -> None:
    spark = SparkSession.builder.getOrCreate()
    _write(records.snapshot_and_updates(spark, rows, span, commit_id))


def _append_truncate(rows: int, offset: int, commit_id: int) -> None:
    spark = SparkSession.builder.getOrCreate()
    _write(records.late_truncate(spark, rows, offset, commit_id))


def _write(made: DataFrame) -> None:
    made.writeTo(records.TABLE).append()


def _set_mode(mode: str) -> None:
    SparkSession.builder.getOrCreate().sql(
        f"alter table {HISTORY} set tblproperties ("
        + ", ".join(f"'write.{way}.mode' = '{mode}'" for way in _WAYS)
        + ")"
    )


_WAYS = ("delete", "update", "merge")


def _layout() -> tuple[int, int]:
    found = (
        SparkSession.builder.getOrCreate()
        .sql(
            f"select count(*), coalesce(sum(file_size_in_bytes), 0) from {HISTORY}.files"
            " where partition.is_current"
        )
        .collect()[0]
    )
    return found[0], found[1]


def _run(home: Home, kind: str, changes: int, words: list[str]) -> Step:
    spark = SparkSession.builder.getOrCreate()
    run = counted(spark, home, words)
    return Step(
        kind=kind,
        changes=changes,
        load=run.load,
        seconds=run.seconds,
        find_seconds=sum(q.seconds for q in run.queries if _finds(q)),
        write_seconds=sum(q.seconds for q in run.queries if q.writes and _reads_changes(q)),
        tables=run.tables,
    )


def _finds(query: Query) -> bool:
    """Whether it asks what the new changes bring, of the current versions."""
    return (
        not query.writes
        and _reads_changes(query)
        and any(scan.table == HISTORY for scan in query.scans)
    )


def _reads_changes(query: Query) -> bool:
    return any(scan.table == records.TABLE for scan in query.scans)


def _check(wanted: tuple[int, int, int]) -> None:
    found = (
        SparkSession.builder.getOrCreate()
        .sql(
            "select count(*), count_if(is_current), count_if(is_current and is_deleted)"
            f" from {HISTORY}"
        )
        .collect()[0]
    )
    if tuple(found) != wanted:
        raise WrongResult(
            f"versions, rows and deleted rows of {HISTORY} are {tuple(found)}, not"
            f" {wanted}: run `pytest tests/python/histories`"
        )
