"""The lake as external tables of Redshift: columns with Redshift's types, and rows.

Types: Amazon Redshift Database Developer Guide, "Querying Iceberg tables" (supported data
types). Each scan reads the current snapshot, as Redshift does.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from pyiceberg.table import StaticTable
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

# Longer values are truncated.
STRING_BYTES = 16384

_TYPES: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: f"varchar({STRING_BYTES})",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamp",
    TimestamptzType: "timestamptz",
    ListType: "rs.super",
    MapType: "rs.super",
    StructType: "rs.super",
}


def redshift_type(iceberg: IcebergType) -> str | None:
    """The Redshift type of a column; None if Redshift cannot read it."""
    if isinstance(iceberg, DecimalType):
        return f"numeric({iceberg.precision},{iceberg.scale})"
    return _TYPES.get(type(iceberg))


class Lake:
    """The Iceberg tables of one sandbox."""

    def __init__(self, folder: Path) -> None:
        self._catalog = folder / "catalog.db"
        self._tables: dict[str, StaticTable] = {}

    def listing(self) -> str:
        """All tables with the columns that Redshift reads, in the format of ``lake.sql``."""
        tables = []
        for (database, name), location in sorted(self._locations().items()):
            columns = [
                (field.name.lower(), redshift_type(field.field_type))
                for field in self._table(location).schema().fields
            ]
            tables.append(
                {
                    "database": database,
                    "table": name,
                    "columns": [(name, kind) for name, kind in columns if kind],
                }
            )
        return json.dumps(tables)

    def rows(self, database: str, name: str, columns: Sequence[str]) -> Iterator[bytes]:
        """The rows of a table as non-empty chunks of CSV; null is an unquoted empty value.

        Raises:
            KeyError: There is no such table.
        """
        scan = self.table(database, name).scan(selected_fields=tuple(columns), case_sensitive=False)
        for batch in scan.to_arrow_batch_reader():
            if batch.num_rows == 0:
                continue
            by_name = {field.lower(): batch.column(field) for field in batch.schema.names}
            buffer = io.BytesIO()
            pyarrow.csv.write_csv(
                pa.table({name: _plain(by_name[name]) for name in columns}),
                buffer,
                pyarrow.csv.WriteOptions(include_header=False),
            )
            yield buffer.getvalue()

    def table(self, database: str, name: str) -> StaticTable:
        """Load a table at its current snapshot.

        Raises:
            KeyError: There is no such table.
        """
        return self._table(self._locations()[database, name])

    def _locations(self) -> dict[tuple[str, str], str]:
        """The current metadata location of each table, by database and name."""
        if not self._catalog.exists():
            return {}
        catalog = f"{self._catalog.as_uri()}?mode=ro"
        with closing(sqlite3.connect(catalog, uri=True, timeout=30)) as connection:
            if not connection.execute(
                "select 1 from sqlite_master where name = 'iceberg_tables'"
            ).fetchall():
                return {}
            found = connection.execute(
                "select table_namespace, table_name, metadata_location"
                " from iceberg_tables where coalesce(iceberg_type, 'TABLE') = 'TABLE'"
            ).fetchall()
        return {(database, name): location for database, name, location in found}

    def _table(self, location: str) -> StaticTable:
        if location not in self._tables:
            if len(self._tables) > 500:
                self._tables.clear()
            self._tables[location] = StaticTable.from_metadata(location)
        return self._tables[location]


def _plain(column: pa.Array) -> pa.Array:
    """A column for CSV: nested values as JSON, bytes in PostgreSQL's notation."""
    if pa.types.is_nested(column.type):
        return _texts(column, lambda value: json.dumps(value, default=_in_json))
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return _texts(column, lambda value: "\\x" + value.hex())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        longest = pa.compute.max(pa.compute.binary_length(column)).as_py() or 0
        if longest > STRING_BYTES:
            return _texts(column, _cut)
    return column


def _texts(column: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    values = (None if value is None else text(value) for value in column.to_pylist())
    return pa.array(values, pa.large_string())


def _cut(value: str) -> str:
    return value.encode()[:STRING_BYTES].decode(errors="ignore")


def _in_json(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
