"""Alerts from Kafka: unread records, and records that expired before they were read."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from spark_ingest.alerts.alert import Alert, Found, Kind
from spark_ingest.commits import commit_log
from spark_ingest.commits.offsets import Span, total
from spark_ingest.connect.broker import Broker, Topic
from spark_ingest.errors import MillraceError
from spark_ingest.lake import bronze
from spark_ingest.sources import Stream


def of_streams(
    spark: SparkSession, broker: Broker, streams: list[Stream], patience: timedelta, now: datetime
) -> Found:
    """Alerts for streams that have stopped reading, or whose records expired unread.

    Streams without a table are skipped. ``patience`` is the age of an unread record at which its
    stream counts as stopped; ``now`` is time zone aware.
    """
    found: list[Alert] = []
    for stream in streams:
        if not bronze.exists(spark, stream.table):
            continue
        try:
            topic = broker.topic(stream.topic)
            if topic is not None:
                alert = _of_stream(spark, broker, stream, topic, now - patience)
                found += [alert] if alert else []
        except MillraceError as error:
            message = f"{stream.topic} cannot be checked: {error}"
            helps = f"spark-ingest plan {stream.name}"
            alert = Alert(Kind.KAFKA, "kafka", message, helps)
            return Found((*found, alert), frozenset({Kind.STOPPED_STREAM, Kind.GAP}))
    return Found(tuple(found))


def _of_stream(
    spark: SparkSession, broker: Broker, stream: Stream, topic: Topic, before: datetime
) -> Alert | None:
    committed = commit_log.committed_ranges(spark, stream, topic).ranges
    first, end = broker.first_offsets(topic), broker.end_offsets(topic)
    # An added partition is read from its first offset.
    read = {p: committed[p][1] if p in committed else first[p] for p in end}
    expired = {p: (read[p], first[p]) for p in end if read[p] < first[p]}
    if expired:
        return Alert(
            Kind.GAP,
            stream.name,
            f"{total(expired):,} offsets of {topic.name} expired before they were read: "
            f"{_listed(expired)}",
            f"spark-ingest recover {stream.name} --accept-gap --dry-run",
        )
    old = broker.begin_offsets(topic, before)
    waiting = {
        p: (read[p], old[p])
        for p in end
        # Transaction markers also have offsets, but are not read.
        if read[p] < old[p] and broker.records_in(topic.name, p, [(read[p], old[p])])
    }
    if not waiting:
        return None
    return Alert(
        Kind.STOPPED_STREAM,
        stream.name,
        f"{total(waiting):,} offsets of {topic.name} from before {before:%Y-%m-%d %H:%M} UTC "
        f"are unread: {_listed(waiting)}",
        f"spark-ingest run {stream.name} --once",
    )


def _listed(spans: dict[int, Span]) -> str:
    return ", ".join(
        f"partition {p} from {first} to {end - 1}" for p, (first, end) in spans.items()
    )
