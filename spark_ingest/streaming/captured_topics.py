"""Topics of captured tables: a connector makes one with the first change that it sends.

Until then nothing is wrong with such a stream: it has a table, and nothing to read.
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
    """A stream's topic, as it is now.

    Raises:
        NothingCaptured: It does not exist, and nothing was ever taken from it.
        ConfigurationError: It does not exist.
        ServiceUnavailable: The broker does not answer.
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
    """What to say of a captured table without a topic."""
    captured = stream.ingest.captured
    by = "up cdc` captures the sandbox's databases"
    if captured is not None and captured.form == "rows":
        by = "poll` captures a table of the sandbox by queries"
    return (
        f"topic {stream.topic} does not exist: nothing was captured yet; `sandbox {by}, "
        "elsewhere a connector of yours does"
    )


def was_filled(spark: SparkSession, table: str) -> bool:
    """Whether a stream's table ever took anything, by its metadata alone."""
    if not bronze.exists(spark, table):
        return False
    # The stream's own snapshots may have expired, and rows be there.
    return bool(own_snapshots(Jvm(spark), table)) or not bronze.is_empty(spark, table)
