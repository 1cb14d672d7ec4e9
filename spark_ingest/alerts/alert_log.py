"""``bronze.ingest_alerts``: the posted alerts, and when they were resolved."""

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
    "kind": "Kind of problem.",
    "subject": "Affected stream, dbt node or exposure; with `kind` the key of the alert.",
    "event": "`began` or `over`.",
    "message": "The problem when it began.",
    "help": "Command that fixes it or shows details.",
    "posted_at": "When the webhook had accepted it.",
}


class Event(StrEnum):
    """The events of an alert, each posted once."""

    BEGAN = "began"
    OVER = "over"


@dataclass(frozen=True)
class Notice:
    """A notice to post.

    Attributes:
        event: Whether the alert began or is over.
        began_at: When its beginning was posted; None if it begins now.
    """

    event: Event
    alert: Alert
    began_at: datetime | None = None


def create(spark: SparkSession) -> bool:
    """Create the table and its schema if missing; return whether the table was created."""
    bronze.create_schema(spark)
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(posted_at)",
        _COMMENTS,
        "One row per posted alert and event.",
    )


def opened(spark: SparkSession) -> list[Notice]:
    """The posted alerts that are not over."""
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
    """The notices to post after a check: first new alerts, then those that are over."""
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
    """Record the posted notices in one commit."""
    rows = [
        (str(n.alert.kind), n.alert.subject, str(n.event), n.alert.message, n.alert.help, at)
        for n in posted
    ]  # fmt: skip
    literal_rows(spark, rows, COLUMNS).writeTo(f"{CATALOG}.{TABLE}").append()
