"""``bronze.ingest_reconciliations``: row counts of captured tables in their databases."""

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
    "source_table": "The table in the database.",
    "source_position": "The position in the database's log at which the rows were counted.",
    "row_count": "Number of rows.",
    "reconciled_at": "Time of the count, by the clock of the client.",
}


@dataclass(frozen=True)
class Reconciliation:
    """A row of the table."""

    stream: str
    table_name: str
    database_name: str
    source_table: str
    source_position: str
    row_count: int
    reconciled_at: datetime


def create(spark: SparkSession) -> bool:
    """Create the table and its schema if missing; return whether the table was created."""
    bronze.create_schema(spark)
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(reconciled_at)",
        _COMMENTS,
        "One row per captured table and count: its rows in the database at a log position.",
    )


def append(spark: SparkSession, counted: Reconciliation) -> None:
    """Append a count."""
    row = tuple(getattr(counted, name) for name in COLUMNS.names)
    literal_rows(spark, [row], COLUMNS).writeTo(f"{CATALOG}.{TABLE}").append()
