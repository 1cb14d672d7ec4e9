"""Which quarantined records a person means, and what is decided about them."""

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
    """Which rows a command speaks of.

    Attributes:
        classes: Error classes; all when empty.
        where: A condition in SQL over the table's columns; None for none.
        discarded: Whether rows that were discarded count too.
    """

    classes: tuple[str, ...] = ()
    where: str | None = None
    discarded: bool = False

    def of(self, rows: DataFrame) -> DataFrame:
        """Those of the rows that are chosen.

        Raises:
            ConfigurationError: The condition is not one.
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
                f"--where {self.where!r} is not a condition over {quarantine_table.TABLE}: "
                f"{java_reason(error)}"
            ) from error


def rows_of(spark: SparkSession, topics: Sequence[str], everywhere: bool) -> DataFrame:
    """Quarantine's rows of some topics, or of all ``everywhere``.

    Raises:
        ConfigurationError: There is no such table yet.
    """
    if not bronze.exists(spark, quarantine_table.TABLE):
        raise ConfigurationError(
            f"{quarantine_table.TABLE} is not there yet: make it with `spark-ingest create`"
        )
    rows = spark.table(f"{CATALOG}.{quarantine_table.TABLE}")
    return rows if everywhere else rows.where(F.col("_kafka_topic").isin(list(topics)))


def discard(rows: DataFrame, reason: str) -> int:
    """Mark open rows as wanted by nobody; their bytes stay. How many these were.

    ``reason`` is for those who ask later.
    """
    place = ["_kafka_topic", "_kafka_topic_id", "_kafka_partition", "_kafka_offset"]
    is_open = "{0}replayed_at is null and {0}discarded_at is null"
    marks = {"discarded_at": F.lit(datetime.now(UTC)), "discard_reason": F.lit(reason)}
    return quarantine_table.merge(
        rows.where(is_open.format("")).select(*place).distinct(),
        place,
        [is_open.format("quarantine.")],
        lambda merge: merge.whenMatched().update(marks),
    )
