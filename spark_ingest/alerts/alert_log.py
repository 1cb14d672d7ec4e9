"""``bronze.ingest_alerts``: which alerts were posted, and that they were over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from spark_ingest.alerts.alert import Alert, Found, Kind
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, literal_rows

TABLE = f"{bronze.SCHEMA}.ingest_alerts"
COLUMNS = StructType(
    [
        StructField("kind", StringType()),
        StructField("subject", StringType()),
        StructField("event", StringType()),
        StructField("message", StringType()),
        StructField("help", StringType()),
        StructField("posted_at", TimestampType()),
    ]
)
_COMMENTS = {
    "kind": "What the alert is about.",
    "subject": "Of what; with `kind` its key.",
    "event": "`began` or `over`.",
    "message": "What was the matter when it began.",
    "help": "The command that helps.",
    "posted_at": "When the webhook had taken it.",
}


class Event(StrEnum):
    """What is posted of an alert, each once."""

    BEGAN = "began"
    OVER = "over"


@dataclass(frozen=True)
class Notice:
    """What there is to post.

    Attributes:
        event: Whether the alert began or is over.
        began_at: When it was posted that it began; None for what begins now.
    """

    event: Event
    alert: Alert
    began_at: datetime | None = None


def create(spark: SparkSession) -> bool:
    """Make the table, and its schema, where they are missing; whether the table was made."""
    bronze.create_schema(spark)
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(posted_at)",
        _COMMENTS,
        "One row per alert and event that was posted.",
    )


def opened(spark: SparkSession) -> list[Notice]:
    """Alerts of which was posted that they began, and not that they are over."""
    newest = (
        spark.table(f"{CATALOG}.{TABLE}")
        .groupBy("kind", "subject")
        .agg(F.max_by(F.struct("*"), "posted_at").alias("row"))
        .select("row.*")
        .where(F.col("event") == str(Event.BEGAN))
        .orderBy("kind", "subject")
        .collect()
    )
    return [
        Notice(
            Event.BEGAN,
            Alert(Kind(row["kind"]), row["subject"], row["message"], row["help"]),
            row["posted_at"],
        )
        for row in newest
    ]


def to_post(opened: Sequence[Notice], found: Found) -> list[Notice]:
    """What a look adds to what was posted: what began since, then what is over."""
    now = {alert.key for alert in found.alerts}
    before = {notice.alert.key for notice in opened}
    began = [Notice(Event.BEGAN, a) for a in found.alerts if a.key not in before]
    over = [
        Notice(Event.OVER, notice.alert, notice.began_at)
        for notice in opened
        if notice.alert.key not in now and notice.alert.kind not in found.unknown
    ]
    return [*began, *over]


def append(spark: SparkSession, posted: Sequence[Notice], at: datetime) -> None:
    """Write down what was posted, in one commit."""
    rows = [
        (str(n.alert.kind), n.alert.subject, str(n.event), n.alert.message, n.alert.help, at)
        for n in posted
    ]  # fmt: skip
    literal_rows(spark, rows, COLUMNS).writeTo(f"{CATALOG}.{TABLE}").append()
