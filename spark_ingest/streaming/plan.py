"""Dry run of a stream, without side effects."""

from __future__ import annotations

import time
from dataclasses import dataclass

from spark_ingest.commits.resume import Position, next_position
from spark_ingest.errors import NothingCaptured
from spark_ingest.lake import bronze
from spark_ingest.records.bronze_rows import planned_columns
from spark_ingest.records.frames import row_by_row
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import Stream
from spark_ingest.streaming.captured_topics import topic_of
from spark_ingest.streaming.services import Services


@dataclass(frozen=True)
class Planned:
    """The result of a dry run.

    Attributes:
        partitions: Number of partitions of the topic; 0 if the topic does not exist yet.
        next_commit: The commit id of the next batch.
        to_read: Records on the broker that are not committed.
        would: The change of the table, as text for users.
        notes: Warnings about the capture, unregistered subjects, a missing topic, and the reason
            for row-by-row decoding.
    """

    partitions: int
    next_commit: int
    to_read: int
    would: str
    notes: tuple[str, ...] = ()


def plan(services: Services, stream: Stream) -> Planned:
    """Plan a run of a stream without changing anything.

    Raises:
        MillraceError: The stream could not start.
    """
    spark, captured = services.spark, stream.ingest.captured
    notes = [] if captured is None else list(captured.warnings())
    topic = None
    try:
        topic = topic_of(services, stream)
    except NothingCaptured as nothing:
        notes.append(str(nothing))
    schemas = Schemas(services.registry, stream, 0, time.sleep)
    wanted = planned_columns(spark, schemas)
    why = row_by_row(schemas.value(), schemas.key())
    if why is not None:
        notes.append(f"decoded row by row, not column by column: {why}")
    notes += [f"subject {subject} is not registered yet" for subject in schemas.unregistered()]
    has_table = bronze.exists(spark, stream.table)
    missing = bronze.missing_columns(spark, stream.table, wanted) if has_table else []
    would = f"add or widen {', '.join(missing)}" if missing else "append"
    if not has_table:
        would = f"create the table with {len(wanted.fields)} columns"
    if topic is None:
        return Planned(0, 1, 0, "wait" if has_table else would, tuple(notes))
    here = Position(0, services.broker.first_offsets(topic), None)
    if has_table:
        here = next_position(spark, services.broker, stream, topic)
    ends = services.broker.end_offsets(topic)
    to_read = sum(end - here.offsets[partition] for partition, end in ends.items())
    number = here.commit_id + 1
    return Planned(len(topic.partitions), number, to_read, would, tuple(notes))
