"""What a run of a stream would do, found out without changing anything."""

from __future__ import annotations

import time
from dataclasses import dataclass

from spark_ingest.lake import bronze
from spark_ingest.records.bronze_rows import planned_columns
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.table_position import Position, position


@dataclass(frozen=True)
class Planned:
    """What a run of a stream would begin with.

    Attributes:
        partitions: Of its topic.
        next_commit: The commit id of its next batch.
        to_read: Records on the broker that are not committed.
        would: What would change in the lake, for people.
    """

    partitions: int
    next_commit: int
    to_read: int
    would: str


def plan(services: Services, stream: Stream) -> Planned:
    """Look at a stream without changing anything.

    Raises:
        MillraceError: The stream could not start.
    """
    spark = services.spark
    topic = services.broker.existing_topic(stream.topic, stream.name)
    wanted = planned_columns(spark, Schemas(services.registry, stream, 0, time.sleep))
    ends = services.broker.end_offsets(topic)
    if bronze.exists(spark, stream.table):
        here = position(services, stream, topic)
        missing = bronze.missing_columns(spark, stream.table, wanted)
        would = f"add or widen {', '.join(missing)}" if missing else "append"
    else:
        here = Position(0, services.broker.first_offsets(topic), None)
        would = f"create the table with {len(wanted.fields)} columns"
    to_read = sum(end - here.offsets[partition] for partition, end in ends.items())
    return Planned(len(topic.partitions), here.commit_id + 1, to_read, would)
