"""A bronze table, quarantine and the commit log in memory, in place of Spark's.

Each does at one step what Spark does in one commit. Real are the lease, the branches, a
stream's run and its batches, the commits beside it, and the commit log's writer.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from spark_ingest.commits import commit_log, commit_log_writer, quarantine_table, resume
from spark_ingest.commits.committed import COMMIT_ID, Commit, newest_own_snapshot, own_snapshots
from spark_ingest.connect.broker import Topic
from spark_ingest.data_files import stage
from spark_ingest.errors import ServiceUnavailable
from spark_ingest.lake.jvm import Jvm
from spark_ingest.sources import IngestMeta, Stream
from spark_ingest.streaming import batch, run, staged_batch
from spark_ingest.streaming.batch_size import BatchSize
from spark_ingest.streaming.progress import BatchReport, Progress
from spark_ingest.streaming.run import StreamRun
from spark_ingest.streaming.services import Services
from tests.python.interleavings.iceberg import Catalog, Metadata, Rows, Snapshot, append_rows
from tests.python.interleavings.schedule import Schedule

TOPIC = Topic("t", "topic", (0,))
STREAM = Stream("shop.t", "bronze.t", "", {}, frozenset(), IngestMeta(topic="t"))
# A batch is a good record and a bad one.
BATCH, END = 2, 4
GOOD, BAD = (0, 2), (1, 3)


@dataclass
class Quarantined:
    """A row of quarantine."""

    offset: int
    batch: datetime
    is_replayed: bool = False


@dataclass(frozen=True)
class Logged:
    """A row of the commit log; ``batch`` is None where it was written down late."""

    commit_id: int
    batch: datetime | None


class FakeRows:
    """Rows that Spark would write."""

    def __init__(self, lake: Lake, *offsets: int) -> None:
        self._lake = lake
        self.offsets = offsets
        self._branch = ""
        self._properties: dict[str, str] = {}

    def writeTo(self, name: str) -> FakeRows:
        self._branch = name.partition(".branch_")[2]
        return self

    def option(self, key: str, value: str) -> FakeRows:
        self._properties[key.removeprefix("snapshot-property.")] = value
        return self

    def append(self) -> None:
        rows = Rows(self.offsets)
        append_rows(self._lake.catalog, self._branch, rows, self._properties)

    def limit(self, _count: int) -> FakeRows:
        return FakeRows(self._lake)


class FakeBad:
    """The bad records of a batch."""

    def __init__(self, *offsets: int, of: datetime | None = None) -> None:
        self.offsets = offsets
        self.batch = of

    def withColumn(self, _name: str, value: datetime) -> FakeBad:
        return FakeBad(*self.offsets, of=value)


class _Silent(Progress):
    def batch(self, report: BatchReport) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class Lake:
    """A bronze table, quarantine and the commit log, and programs that write them.

    Args:
        schedule: Whose order the programs take their steps in.
        compares_all: As :class:`Catalog` says.
        by_files: Of each batch in turn, whether the stream writes its data files itself;
            otherwise Spark's writer stages them.
    """

    def __init__(self, schedule: Schedule, *, compares_all: bool, by_files: Sequence[bool]) -> None:
        self.schedule = schedule
        self._by_files = itertools.cycle(by_files)
        self.catalog = Catalog(schedule, compares_all=compares_all)
        self.quarantine: list[Quarantined] = []
        self.log: list[Logged] = []
        self._written: dict[str, list[Logged]] = {}
        self.uuid = "uuid"
        first = Snapshot(self.catalog.next_number(), None, {}, Rows())
        self.catalog.now = Metadata({first.number: first}, {"main": first.number})
        spark = SimpleNamespace(_jvm=None, _jsparkSession=self, table=lambda _name: FakeRows(self))
        spark.sparkContext = SimpleNamespace(setLocalProperty=lambda _name, _pool: None)
        query: Any = SimpleNamespace(isActive=True, stop=lambda: None)
        reader: Any = SimpleNamespace(start=lambda: query)
        for name in (
            *("format", "options", "load", "queryName", "foreachBatch", "option"),
            "trigger",
        ):
            setattr(reader, name, lambda *_words, **_named: reader)
        reader.writeStream = reader
        spark.readStream = reader
        broker = SimpleNamespace(
            first_offsets=lambda _topic: {0: 0},
            end_offsets=lambda _topic: {0: END},
            begin_offsets=lambda _topic, _begin: {0: 0},
            existing_topic=self._topic,
        )
        self.spark = cast("Any", spark)
        self.services = Services(
            self.spark, cast("Any", None), cast("Any", broker), cast("Any", None), _Silent()
        )
        self._moments = itertools.count()

    def _topic(self, _name: str, _stream: str) -> Topic:
        if self.schedule.happens("the broker is away"):
            raise ServiceUnavailable("the broker is away")
        return TOPIC

    def now(self) -> datetime:
        """A moment that no other batch has."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(self._moments))

    # What Spark does in one commit

    def has(self, offset: int) -> bool:
        line = self.catalog.load().metadata.line()
        return any(offset in snapshot.rows for snapshot in line)

    def _append_bad(self, bad: FakeBad, _many: bool) -> None:
        self.schedule.step("append quarantine")
        assert bad.batch is not None
        self.quarantine += [Quarantined(offset, bad.batch) for offset in bad.offsets]

    def _remove_batch(self, _spark: object, _topic: Topic, began: datetime) -> None:
        self.schedule.step("remove batch")
        self.quarantine = [row for row in self.quarantine if row.batch != began]

    def _uncommitted(
        self, _spark: object, _topic: Topic, at: Mapping[int, int]
    ) -> tuple[list[datetime], bool]:
        self.schedule.step("read quarantine")
        found = {row.batch for row in self.quarantine if row.offset >= at.get(0, 0)}
        return sorted(found), True

    def _remove_uncommitted(
        self, _spark: object, _topic: Topic, at: Mapping[int, int], batches: list[datetime]
    ) -> None:
        self.schedule.step("remove from quarantine")
        self.quarantine = [
            row for row in self.quarantine if row.offset < at.get(0, 0) or row.batch not in batches
        ]

    def _remove_rows_of_replaced_writers(
        self, _spark: object, _stream: Stream, _topic: Topic, at: Mapping[int, int]
    ) -> None:
        self.schedule.step("read what was overtaken")
        starts = {row.batch for row in self.log}
        mine = [row for row in self.quarantine if row.offset < at.get(0, 0) and not row.is_replayed]
        strange = [row for row in mine if row.batch not in starts]
        sound = {row.offset for row in mine if row.batch in starts}
        last = {
            row.offset: max(r.batch for r in strange if r.offset == row.offset) for row in strange
        }
        doomed = [
            (row.offset, row.batch)
            for row in strange
            if row.offset in sound or row.batch < last[row.offset]
        ]
        if doomed:
            self.schedule.step("remove what was overtaken")
            self.quarantine = [
                row
                for row in self.quarantine
                if row.is_replayed or (row.offset, row.batch) not in doomed
            ]

    def _publish_to_log(self, _spark: object, write: Callable[[str], bool]) -> None:
        """As on a branch of the log's table: refused where the log has moved."""
        while True:
            self.schedule.step("branch off the log")
            stood, branch = list(self.log), str(self.catalog.next_number())
            if not write(branch):
                return
            self.schedule.step("publish to the log")
            if self.log == stood:
                self.log += self._written[branch]
                return

    def _write_to_log(self, _spark: object, rows: Sequence[tuple[Any, ...]], branch: str) -> bool:
        names = commit_log.COLUMNS.names
        number, started = names.index("commit_id"), names.index("started_at")
        self._written[branch] = [Logged(row[number], row[started]) for row in rows]
        return bool(rows)

    def _lacking(self, _spark: object, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        self.schedule.step("read log")
        number = commit_log.COLUMNS.names.index("commit_id")
        known = {row.commit_id for row in self.log}
        return [row for row in rows if row[number] not in known]

    def _identity_of(self, _spark: object, _table: str) -> Any:
        self.schedule.step("read log")
        ids = {row.commit_id for row in self.log}
        logged = SimpleNamespace(largest=max(ids, default=None))
        return SimpleNamespace(
            uuid=self.uuid, is_newest=True, has_others=False, logged=logged, ids=ids
        )

    def _unlogged(self, _spark: object, _stream: Stream, known: Any) -> list[tuple[Any, ...]]:
        return [
            commit_log._row(
                STREAM,
                known.uuid,
                own.commit,
                rows=own.rows,
                quarantined=0,
                value_bytes=None,
                started_at=None,
                committed_at=own.committed_at,
            )
            for own in own_snapshots(Jvm(self.spark), STREAM.table)
            if own.commit.id not in known.ids
        ]

    def _remove_rows_ahead(self, _spark: object, _stream: Stream, known: Any) -> str | None:
        newest = newest_own_snapshot(Jvm(self.spark), STREAM.table)
        largest = known.logged.largest
        if newest is None or largest is None or largest <= newest.commit.id:
            return None
        self.schedule.step("remove from log")
        self.log = [row for row in self.log if not newest.commit.id < row.commit_id <= largest]
        return "rolled back"

    def _stage(
        self,
        _records: object,
        _plan: object,
        commit: Commit,
        _began: datetime,
        target: staged_batch.Target,
    ) -> Any:
        offsets = range(commit.starts.get(0, 0), commit.ends[0])
        good = [offset for offset in offsets if offset in GOOD]
        bad = [offset for offset in offsets if offset in BAD]
        if next(self._by_files):
            target.stage_files([Rows(good)], commit)
        else:
            rows: Any = FakeRows(self, *good)
            target.stage(partial(stage.append_rows, rows, commit))
        is_unknown = self.schedule.happens("a schema comes")
        return staged_batch._Counts(
            rows=len(offsets),
            bad=len(bad),
            value_bytes=len(offsets),
            other_bytes=0,
            unknown_ids={"value": [1] if is_unknown else []},
            carried=cast("Any", FakeBad(*bad)),
        )

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Within this the writers' modules have these tables in place of Spark's."""
        lake = self

        schemas = SimpleNamespace(learn=lambda ids, *_words: len(ids))
        names: list[tuple[Any, str, Any]] = [
            (Jvm, "iceberg_table", lambda _jvm, _table: lake.catalog.load()),
            ("spark_ingest.commits.lease", "last_activity", lambda *_words: 0.0),
            ("spark_ingest.commits.lease.Holder", "alive", lambda _h, last_write: False),
            ("spark_ingest.lake.table_change", "time", _NO_TIME),
            ("spark_ingest.commits.branch", "time", _NO_TIME),
            (run, "topic_of", lambda _services, _stream: TOPIC),
            (run, "Schemas", lambda *_words: schemas),
            (run, "batch_ends", lambda *_words: {0: END}),
            (run, "reader_options", lambda *_words: {}),
            (batch, "consumer_options", lambda *_words: {}),
            (run, "_RETRY_SECONDS", 0.0),
            (StreamRun, "_read", lambda _run, _starts, _ends: None),
            (StreamRun, "_record_bytes", lambda _run, _ends: 1.0),
            (BatchSize, "fitting", lambda _size, _waiting, _ask: BATCH),
            (staged_batch, "F", SimpleNamespace(lit=lambda value: value)),
            (batch, "datetime", SimpleNamespace(now=lambda _zone: lake.now())),
            (staged_batch, "_carried_bytes", lambda _spark: 1),
            (staged_batch.Stager, "_planned", lambda _stager, _records: None),
            (staged_batch.Stager, "_stage", lambda _stager, *words: lake._stage(*words)),
            (resume, "_position_of_data", lambda *_words: resume.Position(0, {}, None)),
            (quarantine_table, "append", self._append_bad),
            (quarantine_table, "remove_batch", self._remove_batch),
            (quarantine_table, "may_have", lambda _spark, _topic: True),
            (quarantine_table, "uncommitted", self._uncommitted),
            (quarantine_table, "remove_uncommitted", self._remove_uncommitted),
            (resume, "_remove_rows_of_replaced_writers", self._remove_rows_of_replaced_writers),
            (resume, "_remove_rows_ahead", self._remove_rows_ahead),
            (commit_log, "identity_of", self._identity_of),
            (commit_log, "_unlogged", self._unlogged),
            (commit_log, "_lacking", self._lacking),
            (commit_log, "_write", self._write_to_log),
            (commit_log, "_publish", self._publish_to_log),
            (commit_log_writer.CommitLog, "_write_on", lambda _log: None),
        ]
        with _replaced(names):
            yield

    # What must hold

    def faults(self) -> list[str]:
        """What is wrong once all programs have ended and a last one has put things in order."""
        line = list(self.catalog.now.line())
        ids = [int(s.properties[COMMIT_ID]) for s in line if COMMIT_ID in s.properties]
        bronze = Counter(offset for snapshot in line for offset in snapshot.rows)
        set_aside = Counter(row.offset for row in self.quarantine)
        logged = sorted(row.commit_id for row in self.log)
        found = []
        if sorted(ids, reverse=True) != ids or len(set(ids)) != len(ids):
            found.append(f"commit ids {ids[::-1]}")
        if sorted(set(logged)) != sorted(set(ids)):
            found.append(f"the log has {logged}, the table {ids[::-1]}")
        if len(set(logged)) != len(logged):
            found.append(f"the log has {logged}")
        found += [
            f"record {offset} is {bronze[offset]} times in bronze"
            for offset in (-1, *GOOD, *BAD)
            if bronze[offset] > 1 or (offset in GOOD and not bronze[offset])
        ]
        found += [
            f"record {offset} is {set_aside[offset]} times in quarantine"
            for offset in BAD
            if set_aside[offset] != 1
        ]
        return found


_NO_TIME = SimpleNamespace(sleep=lambda _seconds: None, time=lambda: 1_750_000_000.0)


@contextmanager
def _replaced(names: list[tuple[Any, str, Any]]) -> Iterator[None]:
    patches = [
        patch(f"{of}.{name}", value) if isinstance(of, str) else patch.object(of, name, value)
        for of, name, value in names
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()
