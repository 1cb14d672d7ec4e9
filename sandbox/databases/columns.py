"""The columns that a table has now, as its database tells."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.databases.statements import Connection, Cursor
from sandbox.databases.tables import Database, Table
from sandbox.services.captured_databases import schema_of

# MariaDB's boolean is a number of one digit.
_TYPES = {"postgres": "data_type", "mariadb": "column_type"}


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        type: Its type in the database's words: ``character varying``, ``tinyint(1)``.
        length: How many characters it takes; None when that has no limit.
        precision: Digits of an exact number.
        scale: Digits behind its point.
        fraction: Digits of a time's seconds behind the point.
        has_default: The database knows what to write when nobody says.
    """

    name: str
    type: str
    length: int | None
    precision: int | None
    scale: int | None
    fraction: int | None
    nullable: bool
    has_default: bool


def columns_of(database: Database, table: Table, connection: Connection) -> list[Column]:
    """All columns of a table, in their order.

    What random rows leave to the database (triggers fill it) has a default here.
    """
    cursor: Cursor = connection.cursor()
    cursor.execute(
        f"select column_name, {_TYPES[database.engine]}, character_maximum_length,"
        " numeric_precision, numeric_scale, datetime_precision, is_nullable,"
        " column_default from information_schema.columns"
        " where table_schema = %s and table_name = %s order by ordinal_position",
        (schema_of(database.name), table.name),
    )
    found = []
    for name, kind, length, precision, scale, fraction, nullable, default in cursor.fetchall():
        numbers = (length, precision, scale, fraction)
        has_default = default is not None or name not in table.columns
        found.append(Column(name, kind, *numbers, nullable == "YES", has_default))
    connection.rollback()
    return found
