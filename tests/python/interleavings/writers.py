"""What writes a bronze table: each a program that others may interrupt at every step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from py4j.protocol import Py4JJavaError

from spark_ingest.commits import commit_log
from spark_ingest.commits.commit_log_writer import CommitLog
from spark_ingest.commits.committed import (
    BatchResult,
    Commit,
    CommitKind,
    newest_own_snapshot,
    own_snapshots,
)
from spark_ingest.commits.renewals import Renewals
from spark_ingest.commits.resume import Position
from spark_ingest.errors import LeaseLost, MillraceError
from spark_ingest.lake.jvm import TROUBLE, Jvm
from spark_ingest.streaming import side_commit
from spark_ingest.streaming.run import RunSettings, StreamRun
from tests.python.interleavings.iceberg import Metadata, Rows, Snapshot, Transaction
from tests.python.interleavings.lake import BAD, BATCH, STREAM, TOPIC, FakeRows, Lake

Programs = Mapping[str, Callable[[Lake], None]]

_SETTINGS = RunSettings(every=None, max_records=BATCH, unknown_wait=0)
_TRIES = 12


def stream(lake: Lake) -> None:
    """A stream that takes the table, whoever has it, and all that the broker holds."""
    log = CommitLog(lake.spark, lambda _text: None)
    try:
        try:
            renewals, stopping = Renewals(Jvm(lake.spark)), threading.Event()
            at_work = StreamRun(lake.services, STREAM, _SETTINGS, log, renewals, stopping)
        except MillraceError:
            return
        for _ in range(_TRIES):
            if _try(at_work):
                break
        at_work.stop()
    except MillraceError:
        return
    finally:
        log.close()


def _try(at_work: StreamRun) -> bool:
    """One start of a stream; whether it is done."""
    try:
        at_work.start()
        at_work._batch(cast("Any", None), 0)
        at_work.running()
    except LeaseLost:
        raise
    except MillraceError:
        at_work._end_query()
        return False
    at_work._end_query()
    return True


def replay(lake: Lake) -> None:
    """Land the first bad record, as a replay does, again where the first try failed."""
    for _ in range(_TRIES):
        try:
            if _replay_once(lake):
                return
        except TROUBLE:
            continue


def _replay_once(lake: Lake) -> bool:
    jvm = Jvm(lake.spark)
    newest = newest_own_snapshot(jvm, STREAM.table)
    if newest is None or newest.commit.position.get(0, 0) <= BAD[0]:
        return True
    lake.schedule.step("read quarantine")
    if not any(r.offset == BAD[0] and not r.is_replayed for r in lake.quarantine):
        return True
    if not lake.has(BAD[0]):
        _land_beside(lake, newest.commit.id, CommitKind.REPLAY, BAD[0])
    lake.schedule.step("mark quarantine")
    for row in lake.quarantine:
        row.is_replayed = row.is_replayed or row.offset == BAD[0]
    return True


def backfill(lake: Lake) -> None:
    """Land a record before the stream's first, as a backfill does."""
    for _ in range(_TRIES):
        try:
            newest = newest_own_snapshot(Jvm(lake.spark), STREAM.table)
            if newest is None or lake.has(-1):
                return
            _land_beside(lake, newest.commit.id, CommitKind.BACKFILL, -1)
        except TROUBLE:
            continue
        else:
            return


def _land_beside(lake: Lake, checked: int, kind: CommitKind, offset: int) -> None:
    """Publish one record beside the stream, unless another program like this one did."""

    def make(here: Position) -> tuple[Any, Commit] | None:
        others = own_snapshots(Jvm(lake.spark), STREAM.table, after=checked)
        if any(own.commit.kind is kind for own in others) and lake.has(offset):
            return None
        is_replay = kind is CommitKind.REPLAY
        commit = Commit(
            here.commit_id + 1,
            TOPIC.id,
            {} if is_replay else {0: offset},
            {} if is_replay else {0: offset + 1},
            kind,
            resume=here.offsets,
        )
        return FakeRows(lake, offset), commit

    def stage_files(here: Position, branch: side_commit.SideBranch) -> Commit | None:
        planned = make(here)
        if planned is None:
            return None
        rows, commit = planned
        branch.stage_files([Rows(rows.offsets)], commit)
        return commit

    if kind is CommitKind.REPLAY:
        commit = side_commit.commit_beside(lake.spark, STREAM, lake.uuid, make)
    else:
        commit = side_commit.stage_beside(lake.spark, STREAM, lake.uuid, stage_files)
    if commit is not None:
        result = BatchResult(commit, 1, 0, 1, lake.now(), 0.1)
        commit_log.log_commit(lake.spark, STREAM, result)


def maintain(lake: Lake) -> None:
    """Rewrite the table's files, which moves ``main`` and changes no row."""
    table = lake.catalog.load()
    transaction = Transaction(table)
    head = table.metadata.refs["main"]
    number = lake.catalog.next_number()
    rewritten = Snapshot(number, head, {}, Rows(), kind="replace")

    def change(now: Metadata) -> Metadata:
        return Metadata(
            {**now.snapshots, number: rewritten}, {**now.refs, "main": number}, now.properties
        )

    transaction.change(change, "main")
    # Refused it would only be done another time.
    with suppress(Py4JJavaError):
        transaction.commitTransaction()
