"""The one writer of a bronze table, and how it publishes.

A writer's lease is an Iceberg branch of its own: it stages each batch there and publishes by
fast-forwarding ``main`` to it, which Iceberg refuses when ``main`` has moved. Taking a table
removes branches of writers that are gone, names the new one in a table property, and puts an
empty snapshot on ``main``, in one commit. That snapshot is the fence: a REST catalog compares
``main`` with what a commit was based on, and neither properties nor branches that are removed.
So of two that take a table at once one is refused, and so is a fast-forward that was under
way. Publishing asks for branch and property besides: a write that was under way makes a
removed branch again, but the property then names somebody else. Where nothing but maintenance
moved ``main``, the staged files are put behind it and published all the same.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import psutil

from spark_ingest.commits.committed import COMMIT_ID, SUMMARY_PREFIX, check_number
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
# Of each writer by its branch: one that was suspended and taken over overwrites no other's.
_RENEWED_PREFIX = "millrace.renewed."
_BRANCH_PREFIX = "writer_"
# How long a writer on another machine may be silent before it counts as gone.
_SILENCE_SECONDS = 600
# A writer renews its lease no more often than this.
_RENEW_SECONDS = 120.0
_RENEW_AGAIN_SECONDS = 10.0
_T = TypeVar("_T")
_TAKEN_BY = f"{SUMMARY_PREFIX}taken-by"


@dataclass(frozen=True)
class Holder:
    """The writer that a table's lease names: its branch, its process, its last sign of life."""

    branch: str
    host: str
    pid: int
    process_started: float
    renewed_at: float

    def alive(self, last_write: float) -> bool:
        """Whether the writer still runs; ``last_write`` is its newest sign, epoch seconds."""
        if self.host != socket.gethostname():
            return time.time() - max(self.renewed_at, last_write) < _SILENCE_SECONDS
        try:
            return abs(psutil.Process(self.pid).create_time() - self.process_started) < 1
        except psutil.NoSuchProcess:
            return False

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.process_started, tz=UTC)
        return f"pid {self.pid} on {self.host}, started {since:%Y-%m-%d %H:%M:%S} UTC"


class Lease:
    """The right to write one bronze table; made by :meth:`take`.

    A thread may renew it while another writes under it.
    """

    def __init__(self, jvm: Jvm, table: str, holder: Holder) -> None:
        self._jvm = jvm
        self._table = table
        self._holder = holder
        # Commits of one lease need not be in each other's way.
        self._changing = threading.Lock()
        self._renew_at = time.monotonic() + _RENEW_SECONDS
        self._released = False
        # Whether nothing can be on its way to the catalog that an empty snapshot does not fence.
        self._is_fenced = False

    @classmethod
    def take(cls, jvm: Jvm, table: str) -> Lease:
        """Become the writer of a table.

        Raises:
            LeaseLost: Another writer has it; the text names that one.
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog does not answer.
        """
        lease = cls(jvm, table, _myself())
        change_table(jvm, table, lease._taking)
        lease._is_fenced = True
        return lease

    def stage(self, write: Callable[[str, str], _T]) -> _T:
        """Write a batch where no reader sees it: ``write`` gets the table and the branch."""
        self._is_fenced = False
        return write(self._table, self._holder.branch)

    def start_over(self) -> None:
        """Begin at ``main``, whatever was staged, and fence what this writer has on its way.

        A write or a publish whose answer was lost may reach the catalog at any time. Where it
        got through it is on ``main`` when this returns; otherwise it is refused from now on,
        since ``main`` and the branch have an empty snapshot that it was not based on. So a
        stream looks for its position behind this.

        Raises:
            LeaseLost: Another writer took the table over.
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog does not answer.
        """
        branch = self._holder.branch

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

        with self._changing:
            change_table(self._jvm, self._table, step)
        self._is_fenced = True

    def unstage(self) -> None:
        """Forget what is staged: the branch stands again where it left ``main``.

        Not where ``main`` stands now: the commit that is staged next was numbered before, and
        what others committed since must keep it from being published.

        Raises:
            LeaseLost: Another writer took the table over.
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog does not answer.
        """
        branch = self._holder.branch

        def step(iceberg: Any) -> Step | None:
            self._require(iceberg)
            staged = iceberg.snapshot(branch)
            # One commit at most is staged.
            own = (staged.snapshotId(), staged.parentId())
            base = newest_on_main(iceberg, own)
            if base is None:
                raise CommitRefused(f"{self._table} moved meanwhile: it was rolled back")
            if base == staged.snapshotId():
                return None
            return commit_of(iceberg.manageSnapshots().replaceBranch(branch, base))

        with self._changing:
            change_table(self._jvm, self._table, step)

    def publish(self) -> None:
        """Make the staged batch visible, in one commit.

        Raises:
            LeaseLost: Another writer took the table over, and the batch is not in it.
            CommitRefused: The table moved since the batch was staged, or its catalog is away:
                the table's offsets show whether the batch is in.
        """
        # What main was, or may have been, forwarded to.
        tried: set[int] = set()

        def step(iceberg: Any) -> Step | None:
            # Asked before the lease: whoever took that found the batch there.
            if tried and newest_on_main(iceberg, tried) is not None:
                return None
            self._require(iceberg)
            branch = self._holder.branch
            staged, main = iceberg.snapshot(branch), iceberg.currentSnapshot()
            check_number(iceberg, staged)
            if staged.parentId() != main.snapshotId():
                return self._restaging(iceberg, staged, main, tried)
            tried.add(staged.snapshotId())
            references = iceberg.manageSnapshots()
            return commit_of(references.fastForwardBranch("main", branch))

        with self._changing:
            try:
                change_table(self._jvm, self._table, step)
            except CatalogUnavailable as error:
                # The batch's bad records are in quarantine: only a new start removes them.
                raise CommitRefused(str(error)) from error
        self._renew_at = time.monotonic() + _RENEW_SECONDS

    def _restaging(self, iceberg: Any, staged: Any, main: Any, tried: set[int]) -> Step:
        """Publish what is staged behind ``main``, where only maintenance has moved that.

        The files stay as they are. The branch is set to ``main``, they are added to it, and
        ``main`` follows, in one commit, so that there is no moment in which nothing names them.

        Raises:
            CommitRefused: ``main`` has got rows since, which may be the same ones, or nothing
                is staged.
        """
        if staged.summary().get(COMMIT_ID) is None or not _only_maintained(
            iceberg, main, staged.parentId()
        ):
            raise CommitRefused(f"{self._table} moved meanwhile: it has other commits")
        branch, transaction = self._holder.branch, iceberg.newTransaction()
        references = transaction.manageSnapshots()
        references.replaceBranch(branch, main.snapshotId()).commit()
        append = transaction.newAppend().toBranch(branch)
        for file in staged.addedDataFiles(iceberg.io()):
            append = append.appendFile(file)
        for key in staged.summary():
            if key.startswith(SUMMARY_PREFIX):
                append = append.set(key, staged.summary().get(key))
        append.commit()
        tried.add(transaction.table().snapshot(branch).snapshotId())
        transaction.manageSnapshots().fastForwardBranch("main", branch).commit()
        return commit_of_all(transaction)

    def renew(self) -> None:
        """Show writers elsewhere that this one is alive, where it has not committed for long.

        Does nothing while another thread commits under the lease: that shows it too. A
        catalog that does not take it is asked again a little later.

        Raises:
            LeaseLost: Another writer took the table over.
        """
        if time.monotonic() < self._renew_at or not self._changing.acquire(blocking=False):
            return
        try:
            if not self._released:
                change_table(self._jvm, self._table, self._renewing)
                self._renew_at = time.monotonic() + _RENEW_SECONDS
        except (CommitRefused, CatalogUnavailable):
            self._renew_at = time.monotonic() + _RENEW_AGAIN_SECONDS
        finally:
            self._changing.release()

    def _renewing(self, iceberg: Any) -> Step:
        self._require(iceberg)
        key = f"{_RENEWED_PREFIX}{self._holder.branch}"
        return commit_of(iceberg.updateProperties().set(key, str(time.time())))

    def release(self) -> None:
        """Give the table back; nothing happens where it was taken over.

        Raises:
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog does not answer.
        """
        branch = self._holder.branch

        def step(iceberg: Any) -> Step | None:
            if branch not in iceberg.refs():
                return None
            # The property stays and means nothing without the branch: a REST catalog would
            # remove it even where it names a successor by now.
            return commit_of(iceberg.manageSnapshots().removeBranch(branch))

        with self._changing:
            self._released = True
            change_table(self._jvm, self._table, step)

    def check(self) -> None:
        """Raise where the lease is not held any more.

        Raises:
            LeaseLost: Another writer took the table over.
            CatalogUnavailable: The catalog does not answer.
        """
        change_table(self._jvm, self._table, self._require)

    def _require(self, iceberg: Any) -> None:
        holder = _holder(iceberg)
        # The branch alone proves nothing: a write that was under way when the table was
        # taken over makes it again.
        if not (self._holder.branch in iceberg.refs() and self._is_mine(holder)):
            raise LeaseLost(
                f"{self._table} was taken over ({holder or 'its writer is gone too'})"
                ": this writer stops without committing"
            )

    def _is_mine(self, holder: Holder | None) -> bool:
        return holder is not None and holder.branch == self._holder.branch

    def _fence(self, transaction: Any) -> Any:
        """Put an empty snapshot on ``main``; its number."""
        transaction.newAppend().set(_TAKEN_BY, str(self._holder)).commit()
        return transaction.table().currentSnapshot().snapshotId()

    def _taking(self, iceberg: Any) -> Step | None:
        # Decided by the snapshot that the commit is based on: a later one may have another writer.
        transaction = iceberg.newTransaction()
        table = transaction.table()
        holder, branches = _holder(table), writer_branches(table)
        if holder is not None and holder.branch in branches:
            if self._is_mine(holder):
                return None
            if holder.alive(last_activity(table, holder.branch)):
                raise LeaseLost(
                    f"{self._table} has a writer already ({holder}): stop that one first; "
                    "two would take turns at losing"
                )
        fenced = self._fence(transaction)
        references = transaction.manageSnapshots()
        for branch in branches:
            references = references.removeBranch(branch)
        references.createBranch(self._holder.branch, fenced).commit()
        properties = transaction.updateProperties()
        for key in table.properties():
            if key.startswith(_RENEWED_PREFIX):
                properties = properties.remove(key)
        properties.set(_PROPERTY, _json(self._holder)).commit()
        return commit_of_all(transaction)


def _myself() -> Holder:
    branch = f"{_BRANCH_PREFIX}{secrets.token_hex(6)}"
    pid = os.getpid()
    started = psutil.Process(pid).create_time()
    return Holder(branch, socket.gethostname(), pid, started, time.time())


def _holder(iceberg: Any) -> Holder | None:
    text = iceberg.properties().get(_PROPERTY)
    return None if text is None else Holder(**json.loads(text))


def _json(holder: Holder) -> str:
    return json.dumps(asdict(holder))


def _only_maintained(iceberg: Any, head: Any, base: int | None) -> bool:
    """Whether nothing but rewritten files lies between a snapshot and an older one."""
    while head is not None and head.snapshotId() != base:
        if head.operation() != "replace" or head.summary().get(COMMIT_ID) is not None:
            return False
        parent = head.parentId()
        head = iceberg.snapshot(parent) if parent is not None else None
    return head is not None


def last_activity(iceberg: Any, branch: str) -> float:
    """When the writer of a branch committed or renewed its lease last, epoch seconds."""
    written = float(iceberg.snapshot(branch).timestampMillis()) / 1000
    renewed = iceberg.properties().get(f"{_RENEWED_PREFIX}{branch}")
    return written if renewed is None else max(written, float(renewed))


def writer_branches(iceberg: Any) -> list[str]:
    """The branches on which writers stage their commits."""
    return sorted(name for name in iceberg.refs() if name.startswith(_BRANCH_PREFIX))
