"""Connections to the databases of the sandbox, with the drivers of their servers."""

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
    """The database rejects a row; the message is its own."""


class Refused(MillraceError):
    """The database reports an error."""


def check_captured(home: Home, database: Database) -> None:
    """Check that changes of a database are captured.

    Raises:
        ServiceUnavailable: Connect is down, or has no connector for the database.
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
    """A connection as the owner of the tables, closed at the end.

    Uncommitted changes are rolled back.

    Raises:
        ServiceUnavailable: The server is down.
        Refused: A statement failed, or the connection was lost; first line of the error.
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
    """Upsert a row; an invalid row leaves the transaction unchanged.

    Raises:
        BadRow: The database rejects this row.
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
    """The server's error message, on one line."""
    message = str(error.args[-1]) if error.args else ""
    return (message.strip().splitlines() or [type(error).__name__])[0]
