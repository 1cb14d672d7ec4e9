"""Random transactions carried out: paced, counted, and ended between two of them."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sandbox.databases.contents import Kind
from sandbox.databases.draft import Transaction
from sandbox.databases.statements import Connection, carry_out
from sandbox.databases.tables import Database


@dataclass
class Done:
    """What was done to a database.

    Attributes:
        changes: Committed ones, by table and kind.
        transactions: How many were committed.
        rolled_back: How many were rolled back.
        seconds: How long that took.
        interrupted: A person stopped it (Ctrl-C).
    """

    changes: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    transactions: int = 0
    rolled_back: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    def of_kind(self, kind: Kind) -> int:
        return sum(n for (_, found), n in self.changes.items() if found is kind)


@contextmanager
def ctrl_c_noted() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that what is begun is ended and counted first.

    Cut at any place, a commit may have happened or not. A second Ctrl-C cuts all the same.
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


def run(
    database: Database,
    connection: Connection,
    transactions: Iterable[Transaction],
    rate: float | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Done:
    """Carry out transactions, one after the other, until they end or Ctrl-C.

    Args:
        database: Where.
        connection: A connection to it.
        transactions: What to do.
        rate: Committed changes per second, spread evenly; as fast as possible when None.
        on_progress: Called after each transaction with the number of committed changes.

    Raises:
        OtherWriter: Another program changed what these transactions count on.
    """
    done = Done()
    began = time.monotonic()
    with ctrl_c_noted() as interrupted:
        for transaction in transactions:
            if rate is not None:
                due = began + done.changes.total() / rate
                interrupted.wait(max(0.0, due - time.monotonic()))
            if interrupted.is_set():
                break
            carry_out(database, connection, transaction)
            if transaction.is_rolled_back:
                done.rolled_back += 1
                continue
            done.transactions += 1
            done.changes.update((one.table, one.kind) for one in transaction.changes)
            on_progress(done.changes.total())
        done.interrupted = interrupted.is_set()
    done.seconds = time.monotonic() - began
    return done
