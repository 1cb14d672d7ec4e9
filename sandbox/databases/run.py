"""Random transactions carried out: paced, counted, and ended between two of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
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
        connection: A connection to it; of no use any more after Ctrl-C.
        transactions: What to do.
        rate: Committed changes per second, spread evenly; as fast as possible when None.
        on_progress: Called after each transaction with the number of committed changes.

    Raises:
        OtherWriter: Another program changed what these transactions count on.
    """
    done = Done()
    began = time.monotonic()
    try:
        for transaction in transactions:
            if rate is not None:
                due = began + done.changes.total() / rate
                time.sleep(max(0.0, due - time.monotonic()))
            carry_out(database, connection, transaction)
            if transaction.is_rolled_back:
                done.rolled_back += 1
                continue
            done.transactions += 1
            done.changes.update((one.table, one.kind) for one in transaction.changes)
            on_progress(done.changes.total())
    except KeyboardInterrupt:
        done.interrupted = True
    done.seconds = time.monotonic() - began
    return done
