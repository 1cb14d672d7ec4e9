"""The lease of a bronze table's single writer, and how it publishes.

A lease is an Iceberg branch: the writer appends each batch there and publishes by
fast-forwarding ``main`` to it, which Iceberg refuses if ``main`` has moved. Data files that the
engine wrote itself take both steps in one commit; Spark's writer stages its rows in a commit of
its own. Taking a table removes the branches of former writers, names the new writer in a table
property, and appends an empty snapshot to ``main``, in one commit. That snapshot is the fence: a
REST catalog checks the base snapshot of ``main``, but neither properties nor removed branches. So
of two writers that take a table at once one is refused, as is a fast-forward that is still in
flight. Publishing also checks branch and property: a write in flight recreates a removed branch,
but the property then names another writer. If only maintenance moved ``main``, the files are
appended after it and published all the same.

A writer counts as alive while it commits to the table, or its process renews its leases
(:mod:`spark_ingest.commits.renewals`).
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psutil

from spark_ingest.commits.branch import append_files, unstaging
from spark_ingest.commits.committed import COMMIT_ID, SUMMARY_PREFIX, Commit, check_number
from spark_ingest.commits.renewals import QUIET_SECONDS, Renewals, renewed_at
from spark_ingest.errors import CatalogUnavailable, CommitRefused, LeaseLost
from spark_ingest.lake.jvm import Jvm
from spark_ingest.lake.table_change import (
    Step,
    change_table,
    commit_of,
    commit_of_all,
    newest_on_main,
)

_PROPERTY = "millrace.writer"
_BRANCH_PREFIX = "writer_"
# Lease timeout of a writer on another machine, or in another container.
_SILENCE_SECONDS = 600
# A machine may sleep before it publishes; `maintain` removes orphan files of a day and older.
_LONGEST_STAGED_SECONDS = 12 * 3600
_T = TypeVar("_T")
_TAKEN_BY = f"{SUMMARY_PREFIX}taken-by"


@dataclass(frozen=True)
class _Files:
    """Staged data files, which are in no commit; ``since`` are epoch seconds."""

    files: Sequence[Any]
    commit: Commit
    since: float


@dataclass(frozen=True)
class Holder:
    """The writer in a table's lease.

    Attributes:
        branch: The branch of its commits.
        host: Its host name.
        pid: Its process id there.
        process_started: When that process started, epoch seconds.
        renewed_at: When it took the table, epoch seconds. (Tables keep leases of earlier releases.)
        machine: Distinguishes containers of one host name; empty where the system has no such id.
        writer_id: The identity that the user gave it.
        process: The process in the renewals.
    """

    branch: str
    host: str
    pid: int
    process_started: float
    renewed_at: float
    machine: str = ""
    writer_id: str | None = None
    process: str = ""

    def precedes(self, other: Holder) -> bool:
        """Whether both have one ``writer_id``, and this one is older: the other one replaces it.

        Two that run at once would take the table from each other otherwise.
        """
        is_same = self.writer_id is not None and self.writer_id == other.writer_id
        return is_same and self.process_started <= other.process_started

    def alive(self, last_write: float) -> bool:
        """Whether the writer is running; ``last_write`` is its last activity, epoch seconds."""
        last = max(self.renewed_at, last_write)
        is_here = self.host == socket.gethostname()
        # A pid means something in its own container only.
        if not is_here or self.machine not in ("", _machine()):
            was_before_boot = is_here and last < psutil.boot_time()
            return not was_before_boot and time.time() - last < _SILENCE_SECONDS
        try:
            return abs(psutil.Process(self.pid).create_time() - self.process_started) < 1
        except psutil.NoSuchProcess:
            return False

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.process_started, tz=UTC)
        name = f"writer {self.writer_id}, " if self.writer_id else ""
        return f"{name}pid {self.pid} on {self.host}, started {since:%Y-%m-%d %H:%M:%S} UTC"


class Lease:
    """The exclusive right to write one bronze table, acquired by :meth:`take`."""

    def __init__(self, jvm: Jvm, table: str, holder: Holder, renewals: Renewals) -> None:
        self._jvm = jvm
        self._table = table
        self._holder = holder
        self._renewals = renewals
        self._quiet_at = time.monotonic() + QUIET_SECONDS
        self._check_at = 0.0
        # Since when it is being released, and since when it commits, epoch seconds.
        self._releasing_since: float | None = None
        self._changing_since: float | None = None
        # Whether an empty snapshot fences all commits that may still be in flight.
        self._is_fenced = False
        # What `publish` appends; None if the batch is on the branch.
        self._files: _Files | None = None

    @classmethod
    def take(cls, jvm: Jvm, table: str, renewals: Renewals, writer_id: str | None = None) -> Lease:
        """Become the writer of a table; ``renewals`` renews the lease until it is released.

        A table of a former writer with the same ``writer_id`` is taken over at once.

        Raises:
            LeaseLost: Another writer has it; the message names it.
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog is unavailable.
        """
        lease = cls(jvm, table, _myself(writer_id, renewals.process), renewals)
        change_table(jvm, table, lease._taking)
        lease._is_fenced = True
        renewals.add(lease)
        return lease

    @property
    def branch(self) -> str:
        """The branch of this writer's commits."""
        return self._holder.branch

    def stage(self, write: Callable[[str, str], _T]) -> _T:
        """Write a batch to the branch; ``write`` receives the table and the branch name."""
        self._is_fenced, self._files = False, None
        return write(self._table, self._holder.branch)

    def stage_files(self, files: Sequence[Any], commit: Commit) -> None:
        """Stage a batch of data files, which are in no commit until they are published.

        The catalog gets no request, so there is nothing to fence.

        Args:
            files: Iceberg's ``DataFile`` of each.
            commit: The commit for the snapshot's summary.
        """
        self._files = _Files(files, commit, time.time())

    def start_over(self) -> None:
        """Reset the branch to ``main``, and fence this writer's commits in flight.

        A write or a publish whose response was lost may reach the catalog at any time. Either it
        is on ``main`` when this returns, or it is refused from now on, because ``main`` and the
        branch have a new empty snapshot. So read the position of a stream after this call.

        Raises:
            LeaseLost: Another writer took the table over.
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog is unavailable.
        """
        branch, self._files = self._holder.branch, None

        def step(iceberg: Any) -> Step | None:
            self._require(iceberg)
            head = iceberg.currentSnapshot().snapshotId()
            if self._is_fenced and iceberg.snapshot(branch).snapshotId() == head:
                return None
            transaction = iceberg.newTransaction()
            fenced = self._fence(transaction)
            references = transaction.manageSnapshots()
            references.replaceBranch(branch, fenced).commit()
            return commit_of_all(transaction)

        self._change(step)
        self._is_fenced = True

    def unstage(self) -> None:
        """Discard what is staged: reset the branch to the snapshot where it left ``main``.

        Not to the current head of ``main``: the id of the next staged commit was chosen before,
        so commits of others since then must prevent its publication. Staged data files become
        orphan files.

        Raises:
            LeaseLost: Another writer took the table over.
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog is unavailable.
        """
        if self._files is not None:
            self._files = None
            self.check()
            return
        branch = self._holder.branch

        def step(iceberg: Any) -> Step | None:
            self._require(iceberg)
            return unstaging(iceberg, self._table, branch)

        self._change(step)

    def publish(self) -> None:
        """Publish the staged batch, in one commit.

        Raises:
            LeaseLost: Another writer took the table over, and the batch is not committed.
            CommitRefused: The table changed since the batch was staged, or its catalog is
                unavailable: the table's offsets show whether the batch is committed.
        """
        # Snapshots that main was, or may have been, forwarded to.
        tried: set[int] = set()

        def step(iceberg: Any) -> Step | None:
            # Checked before the lease: a new writer resumes after the batch.
            if tried and newest_on_main(iceberg, tried) is not None:
                return None
            self._require(iceberg)
            return self._publishing(iceberg, tried)

        self._is_fenced = False
        try:
            self._change(step)
        except CatalogUnavailable as error:
            # The batch's bad records are in quarantine: only a restart removes them.
            raise CommitRefused(str(error)) from error
        self._files = None
        self._quiet_at = time.monotonic() + QUIET_SECONDS

    def _publishing(self, iceberg: Any, tried: set[int]) -> Step:
        """The commit that publishes what is staged; its snapshot is added to ``tried``."""
        branch = self._holder.branch
        head, main = iceberg.snapshot(branch), iceberg.currentSnapshot()
        if (staged := self._files) is not None:
            if time.time() - staged.since > _LONGEST_STAGED_SECONDS:
                raise CommitRefused(
                    f"{self._table}: the files of a batch were written more than 12 hours ago, "
                    "and may have been removed as orphan files"
                )
            number, summary = staged.commit.id, staged.commit.summary()
            check_number(iceberg, number)
            return self._appending(iceberg, head.snapshotId(), staged.files, summary, tried)
        check_number(iceberg, head.summary().get(COMMIT_ID))
        if head.parentId() == main.snapshotId():
            tried.add(head.snapshotId())
            return commit_of(iceberg.manageSnapshots().fastForwardBranch("main", branch))
        if head.summary().get(COMMIT_ID) is None:
            raise self._changed()
        files = head.addedDataFiles(iceberg.io())
        summary = {k: head.summary().get(k) for k in head.summary() if k.startswith(SUMMARY_PREFIX)}
        return self._appending(iceberg, head.parentId(), files, summary, tried)

    def _appending(
        self,
        iceberg: Any,
        base: int,
        files: Sequence[Any],
        summary: Mapping[str, str],
        tried: set[int],
    ) -> Step:
        """Append files to the branch after ``main``, and fast-forward ``main``, in one commit.

        Iceberg itself repeats an append after a conflict, but no change of refs: so the whole
        commit is refused if others were faster.

        Args:
            base: The snapshot of ``main`` that the batch follows.

        Raises:
            CommitRefused: ``main`` has new rows since then, possibly the same ones.
        """
        branch, main = self._holder.branch, iceberg.currentSnapshot()
        if not _only_maintained(iceberg, main, base):
            raise self._changed()
        transaction = iceberg.newTransaction()
        if iceberg.snapshot(branch).snapshotId() != main.snapshotId():
            references = transaction.manageSnapshots()
            references.replaceBranch(branch, main.snapshotId()).commit()
        append_files(transaction, branch, files, summary)
        tried.add(transaction.table().snapshot(branch).snapshotId())
        transaction.manageSnapshots().fastForwardBranch("main", branch).commit()
        return commit_of_all(transaction)

    def _changed(self) -> CommitRefused:
        return CommitRefused(f"{self._table} changed concurrently: it has other commits")

    def is_quiet(self) -> bool:
        """Whether this writer has not published for a while."""
        return time.monotonic() >= self._quiet_at

    def lapsing_since(self) -> float | None:
        """Since when another writer may wait for this lease to lapse, epoch seconds.

        Storage may fail, or hang, for one table and one machine alone: a lease that cannot be
        released, or is stuck in a commit, must not live as long as its process.
        """
        stuck = self._changing_since
        if stuck is not None and time.time() - stuck < QUIET_SECONDS:
            stuck = None
        since = [at for at in (self._releasing_since, stuck) if at is not None]
        return min(since, default=None)

    def release(self) -> None:
        """Release the lease; a no-op if the table was taken over.

        Raises:
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog is unavailable.
        """
        branch = self._holder.branch

        def step(iceberg: Any) -> Step | None:
            if branch not in iceberg.refs():
                return None
            # Keep the property, which is meaningless without the branch: a REST catalog would
            # remove it even if it names a successor.
            return commit_of(iceberg.manageSnapshots().removeBranch(branch))

        self._releasing_since = self._releasing_since or time.time()
        self._change(step)
        self._renewals.remove(self)

    def check(self) -> None:
        """Check that this writer still has the lease.

        Raises:
            LeaseLost: Another writer took the table over.
            CatalogUnavailable: The catalog is unavailable.
        """
        change_table(self._jvm, self._table, self._require)

    def check_if_quiet(self) -> None:
        """Check the lease as often as it is renewed, if this writer does not publish.

        Without records it would not learn that its table was taken over. Does nothing if the
        catalog is unavailable.

        Raises:
            LeaseLost: Another writer took the table over.
        """
        if not self.is_quiet() or time.monotonic() < self._check_at:
            return
        self._check_at = time.monotonic() + QUIET_SECONDS
        with suppress(CatalogUnavailable):
            self.check()

    def _change(self, step: Callable[[Any], Step | None]) -> None:
        self._changing_since = time.time()
        try:
            change_table(self._jvm, self._table, step)
        finally:
            self._changing_since = None

    def _require(self, iceberg: Any) -> None:
        holder = holder_of(iceberg)
        # The branch alone does not suffice: a write in flight recreates it after a take-over.
        if not (self._holder.branch in iceberg.refs() and self._is_mine(holder)):
            raise LeaseLost(
                f"{self._table} was taken over ({holder or 'by a writer that has exited'}): "
                "this writer stops without committing"
            )

    def _is_mine(self, holder: Holder | None) -> bool:
        return holder is not None and holder.branch == self._holder.branch

    def _fence(self, transaction: Any) -> Any:
        """Append an empty snapshot to ``main``; returns its id."""
        transaction.newAppend().set(_TAKEN_BY, str(self._holder)).commit()
        return transaction.table().currentSnapshot().snapshotId()

    def _taking(self, iceberg: Any) -> Step | None:
        # Read the metadata that the commit is based on: later metadata may have another writer.
        transaction = iceberg.newTransaction()
        table = transaction.table()
        holder, branches = holder_of(table), writer_branches(table)
        if holder is not None and holder.branch in branches:
            if self._is_mine(holder):
                return None
            last = last_activity(self._jvm, table, holder)
            if not holder.precedes(self._holder) and holder.alive(last):
                raise LeaseLost(
                    f"{self._table} has a writer already ({holder}): stop that one first"
                )
        fenced = self._fence(transaction)
        references = transaction.manageSnapshots()
        for branch in branches:
            references = references.removeBranch(branch)
        references.createBranch(self._holder.branch, fenced).commit()
        transaction.updateProperties().set(_PROPERTY, _json(self._holder)).commit()
        return commit_of_all(transaction)


def _myself(writer_id: str | None, process: str) -> Holder:
    branch = f"{_BRANCH_PREFIX}{secrets.token_hex(6)}"
    pid = os.getpid()
    started = psutil.Process(pid).create_time()
    host, now = socket.gethostname(), time.time()
    return Holder(branch, host, pid, started, now, _machine(), writer_id, process)


@cache
def _machine() -> str:
    """Linux's boot id and this process' namespace of pids; empty on other systems."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def holder_of(iceberg: Any) -> Holder | None:
    """The writer that last took a table; it has the lease while its branch exists."""
    text = iceberg.properties().get(_PROPERTY)
    return None if text is None else Holder(**json.loads(text))


def _json(holder: Holder) -> str:
    return json.dumps(asdict(holder))


def _only_maintained(iceberg: Any, head: Any, base: int | None) -> bool:
    """Whether all snapshots between a snapshot and an older one only rewrote files."""
    while head is not None and head.snapshotId() != base:
        if head.operation() != "replace" or head.summary().get(COMMIT_ID) is not None:
            return False
        parent = head.parentId()
        head = iceberg.snapshot(parent) if parent is not None else None
    return head is not None


def last_activity(jvm: Jvm, iceberg: Any, holder: Holder) -> float:
    """When a writer last committed to its branch or renewed its lease, epoch seconds."""
    written = float(iceberg.snapshot(holder.branch).timestampMillis()) / 1000
    return max(written, renewed_at(jvm, holder.process, holder.branch))


def writer_branches(iceberg: Any) -> list[str]:
    """The branches of writers' commits."""
    return sorted(name for name in iceberg.refs() if name.startswith(_BRANCH_PREFIX))
