"""A catalog for pyiceberg in one SQLite file, as Iceberg's JDBC catalog has it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

_NAME = "lake"
_TABLES = (
    """
create table if not exists iceberg_tables (
    catalog_name varchar(255) not null,
    table_namespace varchar(255) not null,
    table_name varchar(255) not null,
    metadata_location varchar(1000),
    previous_metadata_location varchar(1000),
    iceberg_type varchar(5),
    primary key (catalog_name, table_namespace, table_name)
)
""",
    """
create table if not exists iceberg_namespace_properties (
    catalog_name varchar(255) not null,
    namespace varchar(255) not null,
    property_key varchar(255),
    property_value varchar(1000),
    primary key (catalog_name, namespace, property_key)
)
""",
)


def make_catalog(file: Path, namespace: str | None = None) -> None:
    """Make an empty JDBC catalog in an SQLite file, unless it is there.

    Args:
        file: The file.
        namespace: One that it shall have.
    """
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("pragma journal_mode = wal")
        for table in _TABLES:
            base.execute(table)
        if namespace is not None:
            base.execute(
                "insert or ignore into iceberg_namespace_properties"
                " values (?, ?, 'exists', 'true')",
                (_NAME, namespace),
            )


class OneFileCatalog(NoopCatalog):
    """As much of a catalog as a writer needs that makes a table and appends to it.

    Args:
        file: The SQLite file; made when it is not there.
        warehouse: Folder of the tables.
    """

    def __init__(self, file: Path, warehouse: Path) -> None:
        super().__init__(_NAME)
        self._file = file
        self._warehouse = warehouse
        make_catalog(file)

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Make a table; the schema must be Iceberg's own."""
        if not isinstance(schema, Schema):
            raise TypeError("give an Iceberg schema")
        name = Catalog.identifier_to_tuple(identifier)
        place = location or f"file://{self._warehouse.joinpath(*name)}"
        metadata = new_table_metadata(schema, partition_spec, sort_order, place, dict(properties))
        where = self._write(metadata, 0)
        with closing(sqlite3.connect(self._file)) as base, base:
            base.execute(
                "insert into iceberg_tables values (?, ?, ?, ?, null, 'TABLE')",
                (_NAME, ".".join(name[:-1]), name[-1], where),
            )
        return self.load_table(identifier)

    def load_table(self, identifier: str | Identifier) -> Table:
        """A table as it is now."""
        name = Catalog.identifier_to_tuple(identifier)
        with closing(sqlite3.connect(self._file)) as base:
            (where,) = base.execute(
                "select metadata_location from iceberg_tables"
                " where table_namespace = ? and table_name = ?",
                (".".join(name[:-1]), name[-1]),
            ).fetchone()
        files = _files(where)
        metadata = FromInputFile.table_metadata(files.new_input(where))
        return Table(name, metadata, where, files, self)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Write the table's next metadata, and point at it."""
        name = table.name()
        now = self.load_table(name)
        for requirement in requirements:
            requirement.validate(now.metadata)
        metadata = update_table_metadata(
            now.metadata, updates, metadata_location=now.metadata_location
        )
        number = int(Path(now.metadata_location).name.partition("-")[0]) + 1
        where = self._write(metadata, number)
        with closing(sqlite3.connect(self._file)) as base, base:
            base.execute(
                "update iceberg_tables set metadata_location = ?,"
                " previous_metadata_location = ? where table_namespace = ?"
                " and table_name = ?",
                (where, now.metadata_location, ".".join(name[:-1]), name[-1]),
            )
        return CommitTableResponse(metadata=metadata, metadata_location=where)

    def _write(self, metadata: TableMetadata, number: int) -> str:
        provider = load_location_provider(metadata.location, metadata.properties)
        where = provider.new_table_metadata_file_location(number)
        ToOutputFile.table_metadata(metadata, _files(where).new_output(where))
        return where


def _files(location: str) -> FileIO:
    return load_file_io({}, location)
