"""Select quarantined records, and discard them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_ingest.commits import quarantine_table
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, java_reason


@dataclass(frozen=True)
class Choice:
    """The rows that a command selects.

    Attributes:
        classes: Error classes; all if empty.
        where: SQL condition over the table's columns; None for all rows.
        discarded: Whether to include discarded rows.
    """

    classes: tuple[str, ...] = ()
    where: str | None = None
    discarded: bool = False

    def of(self, rows: DataFrame) -> DataFrame:
        """The selected ones of the rows.

        Raises:
            ConfigurationError: The condition is invalid.
        """
        if self.classes:
            rows = rows.where(F.col("error_class").isin(list(self.classes)))
        if not self.discarded:
            rows = rows.where("discarded_at is null")
        if self.where is None:
            return rows
        try:
            return rows.where(self.where)
        except JAVA_ERRORS as error:
            raise ConfigurationError(
                f"--where {self.where!r} is not a valid condition over {quarantine_table.TABLE}: "
                f"{java_reason(error)}"
            ) from error


def rows_of(spark: SparkSession, topics: Sequence[str], everywhere: bool) -> DataFrame:
    """The rows of quarantine of some topics, or of all if ``everywhere``.

    Raises:
        ConfigurationError: The table does not exist.
    """
    if not bronze.exists(spark, quarantine_table.TABLE):
        raise ConfigurationError(
            f"{quarantine_table.TABLE} does not exist: run `spark-ingest create`"
        )
    rows = spark.table(f"{CATALOG}.{quarantine_table.TABLE}")
    return rows if everywhere else rows.where(F.col("_kafka_topic").isin(list(topics)))


def discard(rows: DataFrame, reason: str) -> int:
    """Mark open rows as discarded for a reason; keep their bytes. Returns their number."""
    place = ["_kafka_topic", "_kafka_topic_id", "_kafka_partition", "_kafka_offset"]
    is_open = "{0}replayed_at is null and {0}discarded_at is null"
    marks = {"discarded_at": F.lit(datetime.now(UTC)), "discard_reason": F.lit(reason)}
    return quarantine_table.merge(
        rows.where(is_open.format("")).select(*place).distinct(),
        place,
        [is_open.format("quarantine.")],
        lambda merge: merge.whenMatched().update(marks),
    )
