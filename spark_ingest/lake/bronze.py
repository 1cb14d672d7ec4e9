"""The bronze contract: one append-only table per topic, every record a row.

The value's fields come first, then the decoded key where the source declares one, then
what Kafka and the ingest know of the record. A column once there is never dropped or
renamed; a new field is a new column at the end.
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
from spark_ingest.lake.table_change import Step, change_table, commit_of

SCHEMA = "bronze"
KEY = "_key"
# Names that Iceberg gives to what it knows of each row.
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

# What a batch notes of each record beside its row, while it is written.
WORKING = tuple(
    f"_millrace_{name}" for name in ("bad", "bytes", "carried", "unknown_value", "unknown_key")
)
# Names that no field of a value may have.
RESERVED = frozenset({KEY, *METADATA.names, *_OF_ICEBERG, *WORKING})

MANIFEST_BYTES = "commit.manifest.target-size-bytes"
PROPERTIES = {
    "format-version": "2",
    # One task's rows go straight into files of their own: no shuffle before the write.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "1",
    # Offsets, times and keys are all different: their dictionaries are given up early, not
    # after two megabytes. What repeats, like a topic's name, fits in less.
    "write.parquet.dict-size-bytes": "65536",
    # A commit every few seconds would otherwise keep metadata files for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "20",
    # Whoever plans a query opens each manifest, and each commit adds one. They are merged while
    # they are small, for the commit that merges them writes them anew.
    "commit.manifest.min-count-to-merge": "20",
    MANIFEST_BYTES: str(2**20),
}


def exists(spark: SparkSession, table: str) -> bool:
    """Whether the lake has this table."""
    return spark.catalog.tableExists(f"{CATALOG}.{table}")


def is_empty(spark: SparkSession, table: str) -> bool:
    """Whether a table, which exists, has no row, by its metadata alone."""
    newest = Jvm(spark).iceberg_table(table).currentSnapshot()
    return newest is None or newest.summary().get("total-records") == "0"


def refuse_copied(spark: SparkSession, tables: Iterable[str]) -> None:
    """Refuse tables whose files lie elsewhere than the lake on this machine's disk.

    Iceberg's metadata holds absolute paths: in a copy of a lake it names the files of the
    place that it was copied from, and these would be read, and written to. One that is not
    there, of ``tables`` as ``schema.name``, is passed over.

    Raises:
        ConfigurationError: A table is of another place.
    """
    warehouse = Path(spark.conf.get(f"spark.sql.catalog.{CATALOG}.warehouse") or "")
    # A warehouse of an object store has a scheme, and its tables may stand anywhere.
    if not warehouse.is_absolute():
        return
    jvm = Jvm(spark)
    for table in tables:
        try:
            if not exists(spark, table):
                continue
            location = str(jvm.iceberg_table(table).location())
        except JAVA_ERRORS:
            # Whoever uses it says what it lacks; the others are not kept waiting.
            continue
        place = Path(location.removeprefix("file:"))
        if not place.resolve().is_relative_to(warehouse.resolve()):
            raise ConfigurationError(
                f"{table} is in {place}, and the lake is {warehouse}: it was copied from there, "
                "and would still be read and written there; docs/runbooks/lost-lake.md says "
                "how to move it"
            )


def create_schema(spark: SparkSession) -> None:
    """Make the bronze schema where it is missing."""
    spark.sql(f"create namespace if not exists {CATALOG}.{SCHEMA}")


def create_table(
    spark: SparkSession,
    table: str,
    columns: StructType,
    partitioned_by: str,
    comments: dict[str, str] | None = None,
    description: str = "",
) -> bool:
    """Make an Iceberg table with the contract's properties, unless it is there.

    ``columns`` all become nullable; ``partitioned_by`` is Iceberg partition transforms, as SQL;
    ``comments`` are the columns', by name. Returns whether it was made.
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
    """A column as a table's type, nested fields by name: Spark's own cast goes by position.

    ``have`` is its type, None where a plain cast will do; a nested field of ``want`` that
    ``have`` lacks is null.
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
    """Columns of ``wanted`` that the table lacks, or has with a type that cannot hold them."""
    have = {f.name: f.dataType for f in spark.table(f"{CATALOG}.{table}").schema.fields}
    return [f.name for f in wanted.fields if not covers(have.get(f.name), f.dataType)]


def evolve(jvm: Jvm, table: str, wanted: StructType) -> None:
    """Add the columns that a table lacks and widen those that grew; nothing is dropped.

    Raises:
        ConfigurationError: A column's type cannot become the wanted one.
        CommitRefused: Others kept changing the table.
        CatalogUnavailable: The catalog is unavailable.
    """
    columns = jvm.iceberg_schema(wanted)

    def union(iceberg: Any) -> Step:
        update = iceberg.updateSchema().unionByNameWith(columns)
        return commit_of(update)

    def impossible(reason: str) -> ConfigurationError:
        return ConfigurationError(f"{table} cannot take the topic's schema: {reason}")

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
