"""``bronze.ingest_reconciliations``: how many rows captured tables had in their databases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, literal_rows

TABLE = f"{bronze.SCHEMA}.ingest_reconciliations"
COLUMNS = StructType(
    [
        StructField("stream", StringType()),
        StructField("table_name", StringType()),
        StructField("database_name", StringType()),
        StructField("source_table", StringType()),
        StructField("source_position", StringType()),
        StructField("row_count", LongType()),
        StructField("reconciled_at", TimestampType()),
    ]
)
_COMMENTS = {
    "stream": "The dbt source table.",
    "table_name": "The bronze table.",
    "database_name": "The database in which the rows were counted.",
    "source_table": "The table there.",
    "source_position": "The place in the log at which it had so many rows.",
    "row_count": "Rows that it had.",
    "reconciled_at": "When, by the clock of the machine that asked.",
}


@dataclass(frozen=True)
class Reconciliation:
    """A count, as it stands in the table."""

    stream: str
    table_name: str
    database_name: str
    source_table: str
    source_position: str
    row_count: int
    reconciled_at: datetime


def create(spark: SparkSession) -> bool:
    """Make the table, and its schema, where they are missing; whether the table was made."""
    bronze.create_schema(spark)
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(reconciled_at)",
        _COMMENTS,
        "One row per captured table and count: its rows in the database, at a place of the log.",
    )


def append(spark: SparkSession, counted: Reconciliation) -> None:
    """Add a count."""
    row = tuple(getattr(counted, name) for name in COLUMNS.names)
    literal_rows(spark, [row], COLUMNS).writeTo(f"{CATALOG}.{TABLE}").append()
