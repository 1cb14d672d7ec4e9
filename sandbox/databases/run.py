"""Execute random transactions: paced, counted, and interruptible between two of them."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sandbox.databases.state import Kind
from sandbox.databases.statements import Connection, carry_out
from sandbox.databases.tables import Database
from sandbox.databases.transactions import Transaction


@dataclass
class Done:
    """The result of the transactions on a database.

    Attributes:
        changes: Committed changes, by table and kind.
        transactions: Number of committed transactions.
        rolled_back: Number of rolled-back transactions.
        seconds: Duration.
        interrupted: Stopped by Ctrl-C.
    """

    changes: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    transactions: int = 0
    rolled_back: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    def of_kind(self, kind: Kind) -> int:
        return sum(n for (_, found), n in self.changes.items() if found is kind)

    def __add__(self, other: Done) -> Done:
        """The combined result of two databases that were changed at the same time."""
        return Done(
            self.changes + other.changes,
            self.transactions + other.transactions,
            self.rolled_back + other.rolled_back,
            max(self.seconds, other.seconds),
            self.interrupted or other.interrupted,
        )


@contextmanager
def ctrl_c_noted() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that the current transaction is finished and counted.

    A second Ctrl-C interrupts at once; then a commit may or may not have happened.
    """
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.getsignal(signal.SIGINT)

    def note(_signal: int, _frame: object) -> None:
        noted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class Part:
    """The transactions for one of several databases.

    Attributes:
        changes: Number of changes that they commit.
    """

    database: Database
    connection: Connection
    transactions: Iterator[Transaction]
    changes: int


def run(
    database: Database,
    connection: Connection,
    transactions: Iterable[Transaction],
    rate: float | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Done:
    """Execute transactions in order, until the last one or Ctrl-C.

    Args:
        rate: Committed changes per second, spread evenly; None is as fast as possible.
        on_progress: Called after each transaction with the number of committed changes.

    Raises:
        OtherWriter: Another program changed rows that these transactions depend on.
    """
    part = Part(database, connection, iter(transactions), 1)
    return run_together([part], rate, on_progress)[0]


def run_together(
    parts: Sequence[Part],
    rate: float | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Done]:
    """Execute the transactions of several databases concurrently, ending at the same time.

    Args:
        rate: Committed changes per second in total; otherwise as in ``run``.
        on_progress: As in ``run``, with the total number of changes.

    Returns:
        The result of each; the duration is that of all.

    Raises:
        OtherWriter: As in ``run``.
    """
    done = [Done() for _ in parts]
    total = 0
    began = time.monotonic()
    with ctrl_c_noted() as interrupted:
        left = list(zip(parts, done, strict=True))
        while left:
            # The database that is furthest behind is next.
            turn = min(left, key=lambda one: one[1].changes.total() / one[0].changes)
            part, mine = turn
            transaction = next(part.transactions, None)
            if transaction is None:
                left.remove(turn)
                continue
            if rate is not None:
                interrupted.wait(max(0.0, began + total / rate - time.monotonic()))
            if interrupted.is_set():
                break
            carry_out(part.database, part.connection, transaction)
            if transaction.is_rolled_back:
                mine.rolled_back += 1
                continue
            mine.transactions += 1
            mine.changes.update((one.table, one.kind) for one in transaction.changes)
            total += len(transaction.changes)
            on_progress(total)
    for one in done:
        one.interrupted = interrupted.is_set()
        one.seconds = time.monotonic() - began
    return done
