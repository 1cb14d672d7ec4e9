"""The bronze contract: one append-only table per topic, one row per record.

The value's fields come first, then the decoded key if the source declares one, then the
metadata columns. An existing column is never dropped or renamed; a new field becomes a new
column at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_ingest.avro.column_types import covers
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, Jvm
from spark_ingest.lake.session import local_warehouse
from spark_ingest.lake.table_change import Step, change_table, commit_of

SCHEMA = "bronze"
KEY = "_key"
# Iceberg's metadata columns.
_OF_ICEBERG = ("_partition", "_pos", "_file", "_deleted", "_spec_id", "_row_id")
HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
METADATA = StructType(
    [
        StructField("_kafka_key", BinaryType()),
        StructField("_kafka_topic", StringType()),
        StructField("_kafka_topic_id", StringType()),
        StructField("_kafka_partition", IntegerType()),
        StructField("_kafka_offset", LongType()),
        StructField("_kafka_timestamp", TimestampType()),
        StructField("_kafka_headers", HEADERS),
        StructField("_schema_id", IntegerType()),
        StructField("_is_tombstone", BooleanType()),
        StructField("_ingested_at", TimestampType()),
        StructField("_commit_id", LongType()),
    ]
)

# Columns of a batch that are not written to the table.
WORKING = tuple(
    f"_millrace_{name}" for name in ("bad", "bytes", "carried", "unknown_value", "unknown_key")
)
# Names that no field of a value may have.
RESERVED = frozenset({KEY, *METADATA.names, *_OF_ICEBERG, *WORKING})

MANIFEST_BYTES = "commit.manifest.target-size-bytes"
PROPERTIES = {
    "format-version": "2",
    # Each task writes its own files: no shuffle before the write.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    # Offsets, times and keys are mostly distinct: fall back from dictionary encoding early, not
    # after two megabytes. Repeated values, like a topic's name, fit in less.
    "write.parquet.dict-size-bytes": "65536",
    # With a commit every few seconds, old metadata files must be deleted.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "20",
    # Query planning opens each manifest, and each commit adds one. Merge them while they are
    # small, because the merging commit rewrites them.
    "commit.manifest.min-count-to-merge": "20",
    MANIFEST_BYTES: str(2**20),
}


def exists(spark: SparkSession, table: str) -> bool:
    """Whether the table exists in the lake."""
    return spark.catalog.tableExists(f"{CATALOG}.{table}")


def is_empty(spark: SparkSession, table: str) -> bool:
    """Whether an existing table has no rows, from its metadata alone."""
    newest = Jvm(spark).iceberg_table(table).currentSnapshot()
    return newest is None or newest.summary().get("total-records") == "0"


def refuse_copied(spark: SparkSession, tables: Iterable[str]) -> None:
    """Refuse tables whose location is outside of a local warehouse.

    Iceberg's metadata has absolute paths: in a copy of a lake they refer to the files of the
    original, which would be read and written. Missing ``tables`` (``schema.name``) are skipped.

    Raises:
        ConfigurationError: A table has another location.
    """
    warehouse = local_warehouse(spark)
    # Elsewhere, tables may be anywhere.
    if warehouse is None:
        return
    jvm = Jvm(spark)
    for table in tables:
        try:
            if not exists(spark, table):
                continue
            location = str(jvm.iceberg_table(table).location())
        except JAVA_ERRORS:
            # An unreadable table fails later, when it is used.
            continue
        folder = Path(location.removeprefix("file:"))
        if not folder.resolve().is_relative_to(warehouse.resolve()):
            raise ConfigurationError(
                f"{table} is in {folder}, and the lake is {warehouse}: its metadata was copied "
                "and still refers to the original files; docs/runbooks/lost-lake.md describes "
                "how to move it"
            )


def create_schema(spark: SparkSession) -> None:
    """Create the bronze schema if it is missing."""
    spark.sql(f"create namespace if not exists {CATALOG}.{SCHEMA}")


def create_table(
    spark: SparkSession,
    table: str,
    columns: StructType,
    partitioned_by: str,
    comments: dict[str, str] | None = None,
    description: str = "",
) -> bool:
    """Create an Iceberg table with the contract's properties if it is missing.

    All ``columns`` become nullable; ``partitioned_by`` has Iceberg partition transforms, as SQL;
    ``comments`` are by column name. Returns whether it was created.
    """
    if exists(spark, table):
        return False
    ddl = _with_comments(columns, comments or {}).toDDL()
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    comment = description.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(
        f"create table if not exists {CATALOG}.{table} ({ddl}) using iceberg "
        f"partitioned by ({partitioned_by}) comment '{comment}' tblproperties ({properties})"
    )
    return True


def conform(column: Column, have: DataType | None, want: DataType) -> Column:
    """Cast a column to a table's type, with nested fields by name: Spark casts by position.

    ``have`` is its type, None for a plain cast; a nested field of ``want`` that ``have`` lacks
    is null.
    """
    if have is None or have == want:
        return column.cast(want)
    if isinstance(have, StructType) and isinstance(want, StructType):
        types = {field.name: field.dataType for field in have.fields}
        parts = [
            conform(column[f.name], types[f.name], f.dataType).alias(f.name)
            if f.name in types
            else F.lit(None).cast(f.dataType).alias(f.name)
            for f in want.fields
        ]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        item, wanted = have.elementType, want.elementType
        return F.transform(column, lambda each: conform(each, item, wanted))
    if isinstance(have, MapType) and isinstance(want, MapType):
        item, wanted = have.valueType, want.valueType
        return F.transform_values(column, lambda _key, each: conform(each, item, wanted))
    return column.cast(want)


def table_columns(decoded: StructType) -> StructType:
    """The columns of a stream's table by the contract.

    ``decoded`` has the value's fields and, where the source declares a key, ``_key``.
    """
    fields = [StructField(field.name, field.dataType) for field in decoded.fields]
    return StructType([*fields, *METADATA.fields])


def missing_columns(spark: SparkSession, table: str, wanted: StructType) -> list[str]:
    """Columns of ``wanted`` that the table lacks, or has with a narrower type."""
    have = {f.name: f.dataType for f in spark.table(f"{CATALOG}.{table}").schema.fields}
    return [f.name for f in wanted.fields if not covers(have.get(f.name), f.dataType)]


def evolve(jvm: Jvm, table: str, wanted: StructType) -> None:
    """Add missing columns to a table and widen types; nothing is dropped.

    Raises:
        ConfigurationError: A column's type cannot be promoted to the wanted one.
        CommitRefused: Others kept changing the table.
        CatalogUnavailable: The catalog is unavailable.
    """
    columns = jvm.iceberg_schema(wanted)

    def union(iceberg: Any) -> Step:
        update = iceberg.updateSchema().unionByNameWith(columns)
        return commit_of(update)

    def impossible(reason: str) -> ConfigurationError:
        return ConfigurationError(f"{table} cannot evolve to the topic's schema: {reason}")

    change_table(jvm, table, union, impossible)


def _with_comments(columns: StructType, comments: dict[str, str]) -> StructType:
    return StructType(
        [
            StructField(
                field.name,
                field.dataType,
                metadata={"comment": comments[field.name]} if comments.get(field.name) else None,
            )
            for field in columns.fields
        ]
    )
