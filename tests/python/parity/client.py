"""What a client of the emulator does beside dbt: statements, and a gate that runs wait at.

``python -m tests.python.parity.client PORT`` and one of

- ``sql STATEMENT``, which prints the rows;
- ``hold FILE``, which locks the gate until the file is there;
- ``wait COUNT``, which ends when so many hold the gate or wait at it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.python.parity.relations import connected

GATE = "gate.gate"
SECONDS = 180
_PAUSE_SECONDS = 0.1
_AT_THE_GATE = (
    "select count(distinct held.pid) from pg_locks as held"
    " inner join pg_class as locked on held.relation = locked.oid"
    " where locked.relname = 'gate'"
)


def sql(port: int, statement: str) -> None:
    """Run one statement."""
    with connected(port) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(statement)
        for row in cursor.fetchall() if cursor.description else ():
            print(*row)


def hold(port: int, file: Path) -> None:
    """Close the gate until somebody writes the file."""
    with connected(port) as connection:
        cursor = connection.cursor()
        cursor.execute("create schema if not exists gate")
        cursor.execute(f"create table if not exists {GATE} (id integer)")
        connection.commit()
        cursor.execute(f"lock {GATE}")
        _until(file.exists)
        connection.commit()


def wait(port: int, count: int) -> None:
    """Look until ``count`` are at the gate, whoever closed it among them."""
    with connected(port) as connection:
        connection.autocommit = True
        cursor = connection.cursor()

        def are_there() -> bool:
            cursor.execute(_AT_THE_GATE)
            return bool(cursor.fetchall()[0][0] >= count)

        _until(are_there)


def _until(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not happens():
        if time.monotonic() > end:
            raise TimeoutError(f"nothing came in {SECONDS} s")
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    own_port, command, argument = int(sys.argv[1]), *sys.argv[2:4]
    if command == "sql":
        sql(own_port, argument)
    elif command == "hold":
        hold(own_port, Path(argument))
    else:
        wait(own_port, int(argument))
