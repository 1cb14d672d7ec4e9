"""The columns of a table, from the information schema of its database."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.databases.statements import Connection, Cursor
from sandbox.databases.tables import Database, Table
from sandbox.services.captured_databases import schema_of

# In MariaDB a boolean is `tinyint(1)`.
_TYPES = {"postgres": "data_type", "mariadb": "column_type"}


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        type: The database's name of the type: ``character varying``, ``tinyint(1)``.
        length: Maximum number of characters; None if unlimited.
        precision: Precision of a decimal.
        scale: Scale of a decimal.
        fraction: Fractional digits of seconds.
        has_default: The database has a default, or fills the column itself.
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
    """All columns of a table, in order.

    Columns that the database fills by triggers count as having a default.
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
