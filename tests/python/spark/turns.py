"""Writers of one real table, taking turns: where each stops, and what a catalog makes of it.

A writer stops where it loads the table and where a commit is on its way. What becomes of that
commit the schedule decides: over HTTP at the gate, which has the request itself; otherwise
where Iceberg would send it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from spark_ingest.commits import branch, lease
from spark_ingest.commits.committed import Commit, CommitKind, newest_own_snapshot, own_snapshots
from spark_ingest.commits.lease import Lease, writer_branches
from spark_ingest.commits.resume import Position
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.data_files.stage import append_rows
from spark_ingest.errors import LeaseLost
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import CATALOG, TROUBLE, Jvm
from spark_ingest.lake.table_change import Step
from spark_ingest.sources import IngestMeta, Stream
from spark_ingest.streaming import side_commit
from tests.python.gate import Answer, Gate, Request
from tests.python.interleavings.iceberg import UNKNOWN, java_error
from tests.python.interleavings.schedule import Delivery, Killed, Schedule
from tests.python.leases import take
from tests.python.spark.lakes import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What the stream's topic holds, and the records beside it.
END = 2
BESIDE = {CommitKind.REPLAY: -1, CommitKind.BACKFILL: -2}
_TRIES = 12
_NOBODY_KNOWS = Answer(504, {"Content-Type": "application/json"}, b"{}")
_NO_PAUSE = SimpleNamespace(sleep=lambda _seconds: None, time=lambda: 1_750_000_000.0)


@dataclass(frozen=True)
class Turns:
    """A table, and programs that write it.

    Attributes:
        lake: Has the table.
        schedule: Whose order the programs take their steps in.
        by_files: Whether the stream writes its data files itself; otherwise Spark's writer stages
            them.
    """

    lake: Lake
    schedule: Schedule
    by_files: bool = False

    # The programs

    def stream(self) -> None:
        """Take the table, whoever has it, and all that the topic holds."""
        with suppress(*TROUBLE):
            held = take(self.lake.jvm, self.lake.table)
            for _ in range(_TRIES):
                try:
                    self._take_records(held)
                    break
                except LeaseLost:
                    break
                except TROUBLE:
                    continue
            held.release()

    def _take_records(self, held: Lease) -> None:
        held.start_over()
        newest = newest_own_snapshot(self.lake.jvm, self.lake.table)
        number, start = (newest.commit.id, newest.commit.position[0]) if newest else (0, 0)
        for offset in range(start, END):
            number += 1
            commit = Commit(number, "topic", {0: offset}, {0: offset + 1})
            self._stage_record(held, offset, commit)
            if self.schedule.happens("a schema comes"):
                held.unstage()
                self._stage_record(held, offset, commit)
            held.publish()

    def _stage_record(self, held: Lease, offset: int, commit: Commit) -> None:
        if self.by_files:
            held.stage_files(self.lake.write(offset), commit)
            return
        held.stage(partial(self._append_rows, self._row(offset), commit))

    def replay(self) -> None:
        """Land a quarantined record."""
        self._land(CommitKind.REPLAY)

    def backfill(self) -> None:
        """Land a record before the stream's first."""
        self._land(CommitKind.BACKFILL)

    def _land(self, kind: CommitKind) -> None:
        """Commit one record beside the stream, again where the first try failed."""
        lake, offset = self.lake, BESIDE[kind]
        stream = Stream("shop.t", lake.table, "", {}, frozenset(), IngestMeta(topic="t"))

        def stage(here: Position, side: side_commit.SideBranch) -> Commit | None:
            done = own_snapshots(lake.jvm, lake.table)
            if any(own.commit.kind is kind for own in done):
                return None
            commit = Commit(here.commit_id + 1, "topic", {}, {}, kind, resume=here.offsets)
            if kind is CommitKind.BACKFILL:
                side.stage_files(lake.write(offset), commit)
            else:
                side.stage(partial(self._append_rows, self._row(offset), commit))
            return commit

        for _ in range(_TRIES):
            try:
                if newest_own_snapshot(lake.jvm, lake.table) is None:
                    return
                uuid = uuid_of(lake.jvm, lake.table)
                side_commit.stage_beside(lake.spark, stream, uuid, stage)
            except TROUBLE:
                continue
            else:
                return

    def _row(self, offset: int) -> DataFrame:
        return self.lake.spark.sql(f"select {offset} as id, 'n' as note")

    # Where they stop

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Within this each program stops at its steps."""
        load = Jvm.iceberg_table

        def loading(jvm: Jvm, table: str) -> Any:
            self.schedule.step("load")
            return load(jvm, table)

        with ExitStack() as changes:
            for of, name, value in (
                (Jvm, "iceberg_table", loading),
                (lease, "last_activity", lambda *_words: 0.0),
                (lease.Holder, "alive", lambda _holder, _last_write: False),
                (table_change, "time", _NO_PAUSE),
                (branch, "time", _NO_PAUSE),
            ):
                changes.enter_context(patch.object(of, name, value))
            if (gate := self.lake.gate) is not None:
                treat = partial(self._at_the_gate, gate)
                changes.enter_context(gate.treating(self.lake.is_commit, treat))
            else:
                for of, name, value in self._before_iceberg():
                    changes.enter_context(patch.object(of, name, value))
            yield

    def _at_the_gate(self, gate: Gate, request: Request) -> Answer:
        answers: list[Answer] = []

        def arrive() -> bool:
            answers.append(gate.pass_on(request))
            return answers[-1].status == HTTPStatus.OK

        try:
            delivery = self.schedule.send(arrive)
        except Killed:
            # Its program learns it where it stops next.
            return _NOBODY_KNOWS
        return _NOBODY_KNOWS if delivery is Delivery.UNANSWERED else answers[0]

    def _before_iceberg(self) -> list[tuple[Any, str, Any]]:
        def commit_of(update: Any) -> Step:
            return partial(self._send, update.commit)

        def commit_of_all(transaction: Any) -> Step:
            return partial(self._send, table_change.commit_of_all(transaction))

        return [
            (lease, "commit_of", commit_of),
            (lease, "commit_of_all", commit_of_all),
            (branch, "commit_of", commit_of),
            (side_commit, "commit_of_all", commit_of_all),
        ]

    def _append_rows(self, *words: Any) -> None:
        if self.lake.gate is None:
            self._send(partial(append_rows, *words))
        else:
            # Over HTTP it stops at the gate.
            append_rows(*words)

    def _send(self, commit: Callable[[], object]) -> None:
        refusals: list[Exception] = []

        def arrive() -> bool:
            try:
                commit()
            except TROUBLE as refusal:
                refusals.append(refusal)
                return False
            return True

        delivery = self.schedule.send(arrive)
        if delivery is Delivery.REFUSED:
            raise refusals[-1]
        if delivery is Delivery.UNANSWERED:
            raise java_error(UNKNOWN)

    # What must hold

    def faults(self, *beside: CommitKind) -> list[str]:
        """What is wrong once all programs have ended and quiet ones put things in order.

        Args:
            beside: What was committed beside the stream.
        """
        own = own_snapshots(self.lake.jvm, self.lake.table)[::-1]
        ids = [each.commit.id for each in own]
        places = [each.commit.position[0] for each in own]
        left = writer_branches(self.lake.jvm.iceberg_table(self.lake.table))
        wanted = sorted([*(BESIDE[kind] for kind in beside), *range(END)])
        found = []
        if ids != list(range(1, len(ids) + 1)):
            found.append(f"commit ids {ids}")
        if places != sorted(places):
            found.append(f"the stream stood at {places}")
        table = self.lake.spark.table(f"{CATALOG}.{self.lake.table}")
        rows = sorted(row.id for row in table.select("id").collect())
        if rows != wanted:
            found.append(f"records {rows}, not {wanted}")
        if left:
            found.append(f"branches {left}")
        return found
