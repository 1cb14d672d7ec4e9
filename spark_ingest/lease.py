"""The one writer of a bronze table, and how it publishes.

A writer's lease is an Iceberg branch of its own: it stages each batch there and publishes by
fast-forwarding ``main`` to it, which Iceberg refuses when ``main`` has moved. Taking over
from a writer that is gone removes its branch and names the new one in a table property, in
one commit. Publishing asks for both: a write that was under way makes a removed branch anew,
but the property then names somebody else. Where nothing but maintenance moved ``main``, the
staged files are put behind it and published all the same.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import psutil
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from spark_ingest.errors import ColumnsChanged, CommitRefused, LeaseLost
from spark_ingest.session import CATALOG, JAVA_ERRORS, Jvm, java_reason

_PROPERTY = "millrace.writer"
_BRANCH_PREFIX = "writer_"
# How long a writer on another machine may be silent before it counts as gone.
_SILENCE_SECONDS = 600
_SUMMARY_PREFIX = "millrace."
COMMIT_ID = f"{_SUMMARY_PREFIX}commit-id"
_ATTEMPTS = 5
# What Spark calls a plan whose table has changed, by a stream or a replay, since it was made.
_OTHER_COLUMNS = (
    "INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS",
    "INCOMPATIBLE_DATA_FOR_TABLE",
)


class CommitKind(StrEnum):
    """Who makes a commit, and what for.

    Attributes:
        STREAM: The stream, of the offsets that come next.
        BACKFILL: Of offsets before the stream's first ones.
        REPLAY: Of quarantined records, at their own positions: takes no offsets.
        GAP: Of nothing: offsets whose records are given up.
        NEW_TOPIC: Of nothing: the stream goes on with another topic of the same name.
    """

    STREAM = "stream"
    BACKFILL = "backfill"
    REPLAY = "replay"
    GAP = "gap"
    NEW_TOPIC = "new_topic"


@dataclass(frozen=True)
class Commit:
    """One own commit of a bronze table, as its snapshot's summary tells it.

    Attributes:
        id: 1, 2, 3…, one for each Iceberg commit of the stream.
        topic_id: Kafka's UUID of the topic.
        starts: First offset of the commit, by partition.
        ends: Offset behind the last one of the commit, by partition.
        kind: Who made it and what for.
        resume: Where the stream goes on, by partition, for a commit that took other offsets
            than the stream's next ones; None where it goes on at ``ends``.
    """

    id: int
    topic_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    kind: CommitKind = CommitKind.STREAM
    resume: Mapping[int, int] | None = None

    @property
    def position(self) -> dict[int, int]:
        """By partition, the offset that the stream reads next."""
        return dict(self.ends if self.resume is None else self.resume)

    def summary(self) -> dict[str, str]:
        """What the commit's snapshot says of it."""
        told = {
            COMMIT_ID: str(self.id),
            "millrace.kind": self.kind,
            "millrace.topic-id": self.topic_id,
            "millrace.start-offsets": json.dumps(dict(self.starts)),
            "millrace.end-offsets": json.dumps(dict(self.ends)),
        }
        if self.resume is not None:
            told["millrace.resume-offsets"] = json.dumps(dict(self.resume))
        return told


@dataclass(frozen=True)
class OwnSnapshot:
    """A snapshot that carries an own commit.

    Attributes:
        commit: What it carries.
        rows: Records it added.
        committed_at: When.
    """

    commit: Commit
    rows: int
    committed_at: datetime


def own_snapshots(jvm: Jvm, table: str, after: int = 0) -> list[OwnSnapshot]:
    """The own commits on ``main`` with a commit id above ``after``, newest first."""
    iceberg = jvm.iceberg_table(table)
    found: list[OwnSnapshot] = []
    snapshot = iceberg.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        if summary.get(COMMIT_ID) is not None:
            resume = summary.get("millrace.resume-offsets")
            commit = Commit(
                id=int(summary.get(COMMIT_ID)),
                topic_id=summary.get("millrace.topic-id"),
                starts=_offsets(summary.get("millrace.start-offsets")),
                ends=_offsets(summary.get("millrace.end-offsets")),
                kind=CommitKind(summary.get("millrace.kind") or CommitKind.STREAM),
                resume=_offsets(resume) if resume is not None else None,
            )
            if commit.id <= after:
                break
            at = datetime.fromtimestamp(snapshot.timestampMillis() / 1000, tz=UTC)
            found.append(
                OwnSnapshot(commit, int(summary.get("added-records") or 0), at)
            )
        parent = snapshot.parentId()
        snapshot = iceberg.snapshot(parent) if parent is not None else None
    return found


@dataclass(frozen=True)
class _Holder:
    branch: str
    host: str
    pid: int
    process_started: float
    renewed_at: float

    def alive(self, last_write: float) -> bool:
        """Whether the writer still runs; ``last_write`` is its newest write, epoch seconds."""
        if self.host != socket.gethostname():
            return time.time() - max(self.renewed_at, last_write) < _SILENCE_SECONDS
        try:
            return (
                abs(psutil.Process(self.pid).create_time() - self.process_started) < 1
            )
        except psutil.NoSuchProcess:
            return False

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.process_started, tz=UTC)
        return f"pid {self.pid} on {self.host}, started {since:%Y-%m-%d %H:%M:%S} UTC"


class Lease:
    """The right to write one bronze table; made by :meth:`take`."""

    def __init__(self, jvm: Jvm, table: str, holder: _Holder) -> None:
        self._jvm = jvm
        self._table = table
        self._holder = holder

    @classmethod
    def take(cls, jvm: Jvm, table: str) -> Lease:
        """Become the writer of a table.

        Raises:
            LeaseLost: Another writer has it; the text names that one.
        """
        for _ in range(_ATTEMPTS):
            iceberg = jvm.iceberg_table(table)
            holder = _holder(iceberg)
            branches = _writer_branches(iceberg)
            if (
                holder is not None
                and holder.branch in branches
                and holder.alive(_last_write(iceberg, holder.branch))
            ):
                raise LeaseLost(
                    f"{table} has a writer already ({holder}): stop that one first; "
                    "two would take turns at losing"
                )
            lease = cls(jvm, table, _myself())
            if lease._replace(iceberg, branches):
                return lease
        raise LeaseLost(
            f"{table}: other writers keep taking it; look who runs spark-ingest"
        )

    def stage(self, rows: DataFrame, commit: Commit) -> None:
        """Write a batch where no reader sees it.

        Args:
            rows: Columns of the table, by name.
            commit: What publishing it will mean.
        """
        stage(rows, self._table, self._holder.branch, commit)

    def unstage(self) -> None:
        """Forget what is staged and not published."""
        iceberg = self._load()
        main = iceberg.currentSnapshot().snapshotId()
        self._commit(
            lambda: iceberg.manageSnapshots().replaceBranch(self._holder.branch, main)
        )

    def publish(self) -> None:
        """Make the staged batch visible, in one commit.

        Raises:
            LeaseLost: Another writer took the table over.
            CommitRefused: The table moved since the batch was staged.
        """
        refusal: CommitRefused | None = None
        for _ in range(_ATTEMPTS):
            iceberg = self._load()
            try:
                self._fast_forward(iceberg)
                return
            except CommitRefused as error:
                refusal = error
            if not self._restage():
                break
        raise refusal or CommitRefused(f"{self._table} moved meanwhile")

    def _fast_forward(self, iceberg: Any) -> None:
        branch = self._holder.branch
        self._commit(
            lambda: iceberg.manageSnapshots().fastForwardBranch("main", branch)
        )

    def _restage(self) -> bool:
        """Put what is staged behind ``main``, where only maintenance has moved that.

        The files stay as they are. The branch is set to ``main`` and they are added to it in
        one commit, so that there is no moment in which nothing names them.

        Returns:
            Whether it was done: not where ``main`` has got rows since, which may be the same
            ones, or where nothing is staged.
        """
        iceberg = self._load()
        branch = self._holder.branch
        staged, main = iceberg.snapshot(branch), iceberg.currentSnapshot()
        if staged.summary().get(COMMIT_ID) is None or not _only_maintained(
            iceberg, main, staged.parentId()
        ):
            return False
        transaction = iceberg.newTransaction()
        references = transaction.manageSnapshots()
        references.replaceBranch(branch, main.snapshotId()).commit()
        append = transaction.newAppend().toBranch(branch)
        for file in staged.addedDataFiles(iceberg.io()):
            append = append.appendFile(file)
        for key in staged.summary():
            if key.startswith(_SUMMARY_PREFIX):
                append = append.set(key, staged.summary().get(key))
        append.commit()
        self._commit_transaction(transaction)
        return True

    def renew(self) -> None:
        """Tell writers elsewhere that this one is alive, though it has nothing to commit."""
        iceberg, me = self._load(), _json(_myself(self._holder))
        self._commit(lambda: iceberg.updateProperties().set(_PROPERTY, me))

    def release(self) -> None:
        """Give the table back; nothing happens where it was taken over."""
        iceberg = self._jvm.iceberg_table(self._table)
        if self._holder.branch in _writer_branches(iceberg):
            self._replace(iceberg, [self._holder.branch], make=False)

    def check(self) -> None:
        """Raise where the lease is not held any more.

        Raises:
            LeaseLost: Another writer took the table over.
        """
        self._load()

    def _load(self) -> Any:
        iceberg = self._jvm.iceberg_table(self._table)
        holder = _holder(iceberg)
        # The branch alone proves nothing: a write that was under way when the table was
        # taken over makes it anew.
        there = self._holder.branch in _writer_branches(iceberg)
        if not (there and self._is_mine(holder)):
            raise LeaseLost(
                f"{self._table} was taken over ({holder or 'its writer is gone too'})"
                ": this writer stops without committing"
            )
        return iceberg

    def _is_mine(self, holder: _Holder | None) -> bool:
        return holder is not None and holder.branch == self._holder.branch

    def _commit(self, update: Callable[[], Any]) -> None:
        try:
            update().commit()
        except JAVA_ERRORS as error:
            raise CommitRefused(
                f"{self._table} moved meanwhile: {java_reason(error)}"
            ) from error

    def _commit_transaction(self, transaction: Any) -> None:
        try:
            transaction.commitTransaction()
        except JAVA_ERRORS as error:
            raise CommitRefused(
                f"{self._table} moved meanwhile: {java_reason(error)}"
            ) from error

    def _replace(self, iceberg: Any, old: list[str], make: bool = True) -> bool:
        """Swap writer branches in one commit; False when somebody was faster."""
        transaction = iceberg.newTransaction()
        try:
            references = transaction.manageSnapshots()
            for branch in old:
                references = references.removeBranch(branch)
            if make:
                current = iceberg.currentSnapshot().snapshotId()
                references = references.createBranch(self._holder.branch, current)
            references.commit()
            properties = transaction.updateProperties()
            if make:
                properties = properties.set(_PROPERTY, _json(self._holder))
            elif self._is_mine(_holder(iceberg)):
                properties = properties.remove(_PROPERTY)
            properties.commit()
            transaction.commitTransaction()
        except JAVA_ERRORS:
            return False
        # Where there was no branch to remove, two may have made theirs at once.
        branches = _writer_branches(self._jvm.iceberg_table(self._table))
        if make and branches != [self._holder.branch]:
            self.release()
            return False
        return True


def stage(rows: DataFrame, table: str, branch: str, commit: Commit) -> None:
    """Write rows to a branch of a table, where no reader sees them.

    Args:
        rows: Columns of the table, by name.
        table: ``schema.name``.
        branch: Of that table.
        commit: What publishing the branch will mean.

    Raises:
        ColumnsChanged: The table got other columns since the rows were planned.
    """
    writer = rows.writeTo(f"{CATALOG}.{table}.branch_{branch}")
    for key, value in commit.summary().items():
        writer = writer.option(f"snapshot-property.{key}", value)
    try:
        writer.append()
    except AnalysisException as error:
        if str(error.getCondition()).startswith(_OTHER_COLUMNS):
            raise ColumnsChanged(f"{table} got other columns meanwhile") from error
        raise


def first_snapshot(jvm: Jvm, table: str) -> None:
    """Give a new table an empty snapshot, since a branch needs one to start from."""
    iceberg = jvm.iceberg_table(table)
    if iceberg.currentSnapshot() is None:
        iceberg.newAppend().commit()


def _myself(old: _Holder | None = None) -> _Holder:
    branch = old.branch if old else f"{_BRANCH_PREFIX}{secrets.token_hex(6)}"
    pid = os.getpid()
    started = psutil.Process(pid).create_time()
    return _Holder(branch, socket.gethostname(), pid, started, time.time())


def _holder(iceberg: Any) -> _Holder | None:
    text = iceberg.properties().get(_PROPERTY)
    return None if text is None else _Holder(**json.loads(text))


def _json(holder: _Holder) -> str:
    return json.dumps(asdict(holder))


def _only_maintained(iceberg: Any, head: Any, base: int | None) -> bool:
    """Whether nothing but rewritten files lies between a snapshot and an older one."""
    while head is not None and head.snapshotId() != base:
        if head.operation() != "replace" or head.summary().get(COMMIT_ID) is not None:
            return False
        parent = head.parentId()
        head = iceberg.snapshot(parent) if parent is not None else None
    return head is not None


def _last_write(iceberg: Any, branch: str) -> float:
    return float(iceberg.snapshot(branch).timestampMillis()) / 1000


def _writer_branches(iceberg: Any) -> list[str]:
    return sorted(name for name in iceberg.refs() if name.startswith(_BRANCH_PREFIX))


def _offsets(text: str) -> dict[int, int]:
    return {int(partition): offset for partition, offset in json.loads(text).items()}
