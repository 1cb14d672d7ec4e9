"""Topics of captured tables, which a connector creates with the first change event.

A missing topic is therefore not an error: the stream has a table, and nothing to read.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_ingest.commits.committed import own_snapshots
from spark_ingest.connect.broker import Topic
from spark_ingest.errors import NothingCaptured
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import Jvm
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services


def topic_of(services: Services, stream: Stream) -> Topic:
    """The current topic of a stream.

    Raises:
        NothingCaptured: It does not exist, and the stream has never read records.
        ConfigurationError: It does not exist.
        ServiceUnavailable: The broker is unavailable.
    """
    broker = services.broker
    if (
        stream.ingest.captured is not None
        and broker.topic(stream.topic) is None
        and not was_filled(services.spark, stream.table)
    ):
        raise NothingCaptured(nothing_captured(stream))
    return broker.existing_topic(stream.topic, stream.name)


def nothing_captured(stream: Stream) -> str:
    """The message for a captured table without a topic."""
    captured = stream.ingest.captured
    by = "up cdc` captures the sandbox's databases"
    if captured is not None and captured.form == "rows":
        by = "poll` captures a table of the sandbox by queries"
    return (
        f"topic {stream.topic} does not exist: nothing was captured yet; `sandbox {by}, "
        "elsewhere a connector of yours does"
    )


def was_filled(spark: SparkSession, table: str) -> bool:
    """Whether records were ever committed to a stream's table, from its metadata alone."""
    if not bronze.exists(spark, table):
        return False
    # The stream's own snapshots may have expired although the table has rows.
    return bool(own_snapshots(Jvm(spark), table)) or not bronze.is_empty(spark, table)
