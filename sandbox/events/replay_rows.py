"""`sandbox replay --table`: rows of a file, written to a database table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from sandbox import ui
from sandbox.databases.columns import columns_of
from sandbox.databases.known import DATABASES
from sandbox.databases.run import ctrl_c_noted
from sandbox.databases.server import BadRow, check_captured, opened, write_row
from sandbox.databases.statements import Connection
from sandbox.databases.tables import Database, Table
from sandbox.events import file_rows
from sandbox.events.column_fields import column_field
from sandbox.events.fields import Field, InvalidValue
from sandbox.events.matching import Matching
from sandbox.events.produce import progress
from sandbox.services.connect import wait_until_passed
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError

TABLES = {
    f"{database.name}.{table.name}": (database, table)
    for database in DATABASES.values()
    for table in database.tables
}
"""The tables that rows can be written to, by their name in ``--table``."""
ROWS_PER_TRANSACTION = 500


@dataclass(frozen=True)
class FileFormat:
    """How to read a file.

    Attributes:
        delimiter: The cell delimiter; detected if None.
        null: The cell value that means null.
        columns: Column of the file by column of the table.
        constants: Value for every row by column.
    """

    delimiter: str | None
    null: str
    columns: Mapping[str, str]
    constants: Mapping[str, str | None]


@dataclass
class Written:
    """The result of writing a file.

    Attributes:
        read: Number of rows read.
        written: Number of rows written to the table.
        refused: Number of invalid rows; each is reported on standard error.
        interrupted: Stopped by Ctrl-C; ``written`` rows are committed.
    """

    read: int = 0
    written: int = 0
    refused: int = 0
    interrupted: bool = False


def replay_rows(
    home: Home, table: str, text: TextIO, name: str, file_format: FileFormat
) -> Written:
    """Upsert the rows of a file into a table.

    Returns when the connector has processed them. ``table`` is a key of ``TABLES``; ``text`` is
    the file at its beginning, ``name`` its name in errors.

    Raises:
        ConfigurationError: There is no such table, or the file is invalid.
        MillraceError: The database is down, or reports an error other than an invalid row.
    """
    if table not in TABLES:
        raise ConfigurationError(
            f"--table {table}: there is no such table; known: {', '.join(TABLES)}"
        )
    database, chosen = TABLES[table]
    check_captured(home, database)
    began = time.monotonic()
    with opened(home, database) as connection:
        columns = [column_field(one) for one in columns_of(database, chosen, connection)]
        rows = file_rows.read_table(
            text,
            name,
            [column.name for column in columns],
            file_format.delimiter,
            file_format.null,
            [file_format.columns.get(column, column) for column in chosen.key],
        )
        matching = Matching(table, columns, file_format.columns, file_format.constants)
        matching.check(rows.columns)
        matching.note_unused(rows.columns)
        with progress(f"replaying to {table}", None) as on_progress:
            written = _write(database, chosen, connection, matching, rows, on_progress)
    wait_until_passed(home, database.connector)
    ui.echo(
        f"{written.written:,} of {written.read:,} rows to {table}"
        f" in {time.monotonic() - began:.1f} s, {written.refused:,} refused;"
        f" the connector {database.connector} has passed them"
    )
    return written


def _write(
    database: Database,
    table: Table,
    connection: Connection,
    matching: Matching,
    rows: file_rows.Table,
    on_progress: Callable[[int], None],
) -> Written:
    """Write rows in transactions; invalid rows are reported and counted.

    Raises:
        ConfigurationError: The first row has no key and is not a known header.
    """
    done = Written()
    known = {column.name: column for column in matching.fields}
    with ctrl_c_noted() as interrupted:
        while not interrupted.is_set() and (chunk := list(islice(rows.rows, ROWS_PER_TRANSACTION))):
            taken = 0
            for row in chunk:
                try:
                    given = matching.values(row)
                    if not (rows.has_header or done.read or taken or done.refused):
                        _check_first(table, known, given)
                    values = _converted(known, given)
                    write_row(database, table, connection, values)
                    taken += 1
                except (InvalidValue, BadRow) as error:
                    done.refused += 1
                    ui.say(f"line {row.line}: {error}")
            connection.commit()
            done.read += len(chunk)
            done.written += taken
            on_progress(done.written)
        done.interrupted = interrupted.is_set()
    return done


def _check_first(table: Table, known: Mapping[str, Field], given: Mapping[str, Any]) -> None:
    """Check that the first row is not a header with unknown column names."""
    try:
        for name in table.key:
            known[name].converted(given)
    except InvalidValue as invalid:
        key = table.key[0]
        raise ConfigurationError(
            f"the first row is no header, for none of its cells is {key}, and no row:"
            f" {invalid}; `--column {key}=COLUMN` says what {key} is called in the file"
        ) from invalid


def _converted(known: Mapping[str, Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """A row for the database, with the columns that the file has."""
    for name, column in known.items():
        if column.required and name not in given:
            raise InvalidValue(f"{name} is missing")
    return {name: known[name].converted(given) for name in given}
