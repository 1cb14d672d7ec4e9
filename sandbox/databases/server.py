"""A database of the sandbox, connected to by its server's own driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sandbox.databases.statements import Connection, upsert
from sandbox.databases.tables import Database, Row, Table
from sandbox.services import mariadb, postgres
from sandbox.services.connect import FAILED, connector_status, describe
from sandbox.settings import Home
from spark_ingest.errors import MillraceError, ServiceUnavailable


class BadRow(MillraceError):
    """The database does not take a row; the text is the reason in its words."""


class Refused(MillraceError):
    """The database does not do what it was asked."""


def check_captured(home: Home, database: Database) -> None:
    """See to it that what will change is captured, before it does.

    Raises:
        ServiceUnavailable: Connect does not run, or has no connector for the database.
        MillraceError: The connector has failed.
    """
    found = {status.name: status for status in connector_status(home)}
    status = found.get(database.connector)
    if status is None:
        raise ServiceUnavailable(f"no connector captures {database.name}: `sandbox up cdc`")
    if status.state == FAILED:
        raise MillraceError(f"{database.name} is not captured; connector {describe(status)}")


@contextmanager
def opened(home: Home, database: Database) -> Iterator[Connection]:
    """A connection as the user that owns the tables, closed at the end.

    What was not committed by then is undone.

    Raises:
        ServiceUnavailable: The server does not answer.
        Refused: It refuses a statement, or goes away; the first line of its words.
    """
    import psycopg2
    import pymysql

    connection: Connection = (
        mariadb.connect(home, database.name)
        if database.engine == "mariadb"
        else postgres.connect(home, database.name)
    )
    with closing(connection):
        try:
            yield connection
        except (psycopg2.Error, pymysql.MySQLError) as error:
            raise Refused(
                f"{database.name} at {database.engine} refuses: {reason(error)};"
                f" look at `sandbox status` and `sandbox logs {database.engine}`"
            ) from error


def write_row(database: Database, table: Table, connection: Connection, row: Row) -> None:
    """Write a row, or over the one of its key; a bad one leaves the transaction as it was.

    Raises:
        BadRow: The database refuses this row.
    """
    import psycopg2
    import pymysql

    cursor = connection.cursor()
    cursor.execute("savepoint one_row")
    try:
        cursor.execute(upsert(database, table, [*row]), [*row.values()])
    except (
        psycopg2.DataError,
        psycopg2.IntegrityError,
        pymysql.DataError,
        pymysql.IntegrityError,
    ) as error:
        cursor.execute("rollback to savepoint one_row")
        raise BadRow(reason(error)) from error
    cursor.execute("release savepoint one_row")


def reason(error: Exception) -> str:
    """A driver's error in the server's words, on one line."""
    said = str(error.args[-1]) if error.args else ""
    return (said.strip().splitlines() or [type(error).__name__])[0]
