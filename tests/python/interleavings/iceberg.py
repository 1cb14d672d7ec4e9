"""Iceberg's Java API over a catalog in memory: what a bronze table's writers ask of it.

Each look at the catalog and each commit is a step of the order that is tried. A commit is what
the catalog checks and what it changes; the network may lose it, lose its answer, or bring it
later.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.python.interleavings.schedule import Delivery, Schedule

_PACKAGE = "org.apache.iceberg.exceptions"
CONFLICT = f"{_PACKAGE}.CommitFailedException"
UNKNOWN = f"{_PACKAGE}.CommitStateUnknownException"
AWAY = f"{_PACKAGE}.ServiceUnavailableException"
INVALID = f"{_PACKAGE}.ValidationException"


def java_error(name: str) -> Py4JJavaError:
    """An error of this Java class, as Py4J hands it on."""
    java = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: name),
        toString=lambda: name,
        getMessage=lambda: name,
        getCause=lambda: None,
        _target_id="o1",
        # What Py4J asks for the error's text, and how a JVM answers.
        _gateway_client=SimpleNamespace(send_command=lambda _command: f"ys{name}"),
    )
    return Py4JJavaError("", java)


class Rows(tuple[Any, ...]):
    """The rows of a data file."""

    __slots__ = ()


@dataclass(frozen=True)
class Snapshot:
    """A snapshot, with the rows that it added."""

    number: int
    parent: int | None
    properties: Mapping[str, str]
    rows: Rows
    kind: str = "append"

    def snapshotId(self) -> int:
        return self.number

    def parentId(self) -> int | None:
        return self.parent

    def operation(self) -> str:
        return self.kind

    def timestampMillis(self) -> int:
        return self.number

    def summary(self) -> Mapping[str, str]:
        return {**self.properties, "added-records": str(len(self.rows))}

    def addedDataFiles(self, _io: object) -> list[Rows]:
        return [self.rows] if self.rows else []


@dataclass(frozen=True)
class Metadata:
    """What a catalog knows of a table."""

    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    refs: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def line(self, ref: str = "main") -> Iterator[Snapshot]:
        """A ref's snapshots, newest first."""
        at: int | None = self.refs[ref]
        while at is not None:
            yield self.snapshots[at]
            at = self.snapshots[at].parent


# What a commit does to the metadata, whatever these are by then.
Change = Callable[[Metadata], Metadata]


class Catalog:
    """One table's metadata and who may change them.

    With ``compares_all`` a commit is refused when anything changed since it was planned, as in
    a JDBC catalog. Otherwise only when one of the refs that it sets did, as in a REST catalog:
    properties and removed refs are compared with nothing.
    """

    def __init__(self, schedule: Schedule, *, compares_all: bool) -> None:
        self.schedule = schedule
        self.compares_all = compares_all
        self.now = Metadata()
        self._numbers = itertools.count(1)

    def next_number(self) -> int:
        return next(self._numbers)

    def load(self) -> Table:
        """The table as it is now."""
        self.schedule.step("load")
        return Table(self, self.now)

    def commit(self, base: Metadata, expected: set[str], change: Change) -> None:
        """Send a commit, and wait for the answer.

        Args:
            base: The metadata that it was planned on.
            expected: The refs that must be what they were there.
            change: What it does.

        Raises:
            Py4JJavaError: Refused, or nobody knows.
        """

        def arrive() -> bool:
            if self.compares_all:
                holds = self.now is base
            else:
                holds = all(base.refs.get(r) == self.now.refs.get(r) for r in expected)
            if holds:
                self.now = change(self.now)
            return holds

        delivery = self.schedule.send(arrive)
        if delivery is Delivery.REFUSED:
            raise java_error(CONFLICT)
        if delivery is Delivery.UNANSWERED:
            raise java_error(UNKNOWN)


class Table:
    """``org.apache.iceberg.Table``."""

    def __init__(self, catalog: Catalog, metadata: Metadata) -> None:
        self.catalog = catalog
        self.metadata = metadata

    def name(self) -> str:
        return "lake.bronze.t"

    def io(self) -> None:
        return None

    def uuid(self) -> str:
        return "uuid"

    def refs(self) -> Mapping[str, int]:
        return self.metadata.refs

    def properties(self) -> Mapping[str, str]:
        return self.metadata.properties

    def currentSnapshot(self) -> Snapshot | None:
        return self.snapshot("main")

    def snapshot(self, which: str | int) -> Snapshot | None:
        number = self.metadata.refs.get(which) if isinstance(which, str) else which
        return None if number is None else self.metadata.snapshots[number]

    def newTransaction(self) -> Transaction:
        return Transaction(self)

    def manageSnapshots(self) -> References:
        return References(Transaction(self), alone=True)

    def updateProperties(self) -> Properties:
        return Properties(Transaction(self), alone=True)

    def newAppend(self) -> Append:
        return Append(Transaction(self), alone=True)


class Transaction:
    """``org.apache.iceberg.Transaction``: changes that are one commit."""

    def __init__(self, table: Table) -> None:
        self._catalog = table.catalog
        self._base = self._here = table.metadata
        self._expected: set[str] = set()
        self._changes: list[Change] = []

    @property
    def here(self) -> Metadata:
        """The metadata with what was changed so far."""
        return self._here

    def number(self) -> int:
        return self._catalog.next_number()

    def change(self, change: Change, *expected: str) -> None:
        """Add a change, and the refs that must not have moved."""
        self._here = change(self._here)
        self._changes.append(change)
        self._expected.update(expected)

    def table(self) -> Table:
        return Table(self._catalog, self._here)

    def manageSnapshots(self) -> References:
        return References(self)

    def updateProperties(self) -> Properties:
        return Properties(self)

    def newAppend(self) -> Append:
        return Append(self)

    def startMetadata(self) -> Metadata:
        return self._base

    def currentMetadata(self) -> Metadata:
        return self._here

    def underlyingOps(self) -> SimpleNamespace:
        return SimpleNamespace(commit=lambda _base, _changed: self.commitTransaction())

    def commitTransaction(self) -> None:
        changes = self._changes

        def change(now: Metadata) -> Metadata:
            for each in changes:
                now = each(now)
            return now

        self._catalog.commit(self._base, self._expected, change)


class _Pending:
    def __init__(self, transaction: Transaction, *, alone: bool = False) -> None:
        self._transaction = transaction
        self._alone = alone

    def commit(self) -> None:
        if self._alone:
            self._transaction.commitTransaction()


class References(_Pending):
    """``org.apache.iceberg.ManageSnapshots``."""

    def createBranch(self, branch: str, number: int) -> References:
        return self._set(branch, number)

    def replaceBranch(self, branch: str, number: int) -> References:
        return self._set(branch, number)

    def removeBranch(self, branch: str) -> References:
        def change(now: Metadata) -> Metadata:
            refs = {name: at for name, at in now.refs.items() if name != branch}
            return replace(now, refs=refs)

        self._transaction.change(change)
        return self

    def fastForwardBranch(self, branch: str, to: str) -> References:
        here = self._transaction.here
        target = here.refs.get(to)
        if target is None or here.refs[branch] not in [s.number for s in here.line(to)]:
            raise java_error(INVALID)
        return self._set(branch, target)

    def _set(self, branch: str, number: int) -> References:
        def change(now: Metadata) -> Metadata:
            return replace(now, refs={**now.refs, branch: number})

        self._transaction.change(change, branch)
        return self


class Properties(_Pending):
    """``org.apache.iceberg.UpdateProperties``."""

    def set(self, key: str, value: str) -> Properties:
        self._transaction.change(
            lambda now: replace(now, properties={**now.properties, key: value})
        )
        return self

    def remove(self, key: str) -> Properties:
        def change(now: Metadata) -> Metadata:
            kept = {name: v for name, v in now.properties.items() if name != key}
            return replace(now, properties=kept)

        self._transaction.change(change)
        return self


class Append(_Pending):
    """``org.apache.iceberg.AppendFiles``."""

    def __init__(self, transaction: Transaction, *, alone: bool = False) -> None:
        super().__init__(transaction, alone=alone)
        self._branch = "main"
        self._rows = Rows()
        self._properties: dict[str, str] = {}

    def toBranch(self, branch: str) -> Append:
        self._branch = branch
        return self

    def appendFile(self, rows: Rows) -> Append:
        self._rows = Rows((*self._rows, *rows))
        return self

    def set(self, key: str, value: str) -> Append:
        self._properties[key] = value
        return self

    def commit(self) -> None:
        # A branch that is gone is made again, from main: so does Iceberg.
        here = self._transaction.here.refs
        parent = here.get(self._branch, here.get("main"))
        added = Snapshot(self._transaction.number(), parent, self._properties, self._rows)
        branch = self._branch

        def change(now: Metadata) -> Metadata:
            return replace(
                now,
                snapshots={**now.snapshots, added.number: added},
                refs={**now.refs, branch: added.number},
            )

        self._transaction.change(change, branch)
        super().commit()


def append_rows(catalog: Catalog, branch: str, rows: Rows, properties: dict[str, str]) -> None:
    """Append rows as Spark does: planned again behind whoever was faster.

    Raises:
        Py4JJavaError: The answer was lost.
    """
    while True:
        append = Table(catalog, catalog.now).newAppend().toBranch(branch)
        append.appendFile(rows)
        for key, value in properties.items():
            append.set(key, value)
        try:
            append.commit()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() != CONFLICT:
                raise
        else:
            return
