"""Finds and reads records with a timestamp out of Spark's range, with a plain consumer.

Spark's Kafka source converts milliseconds to microseconds and fails the task at the first record
whose timestamp overflows 64 bits; it has no option to skip one. Records between them are still
read by Spark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from spark_ingest.commits.offsets import Ranges, Span, Spans
from spark_ingest.connect.broker import Broker
from spark_ingest.lake.jvm import JAVA_ERRORS, java_trace
from spark_ingest.records.validation import KAFKA_ROWS, REFUSED, REFUSED_AS

_LARGEST_MS = (2**63 - 1) // 1000
_OVERFLOW = "long overflow"
# Reading this many more records without Spark costs less than another commit.
_NEAR = 1000
# Limits of records that are read in the driver's memory.
_MOST_RECORDS = 10_000
_MOST_BYTES = 32 * 2**20
_CHECK_EACH = 1000

_ROWS = StructType(
    [
        *(field for field in KAFKA_ROWS if field.name != "timestamp"),
        StructField("micros", LongType()),
        StructField(REFUSED, REFUSED_AS),
    ]
)


@dataclass(frozen=True)
class Place:
    """The position of a record.

    Attributes:
        size: Bytes of its key and value.
        fits: Whether its timestamp is in Spark's range.
    """

    offset: int
    size: int
    fits: bool


def may_be_cause_of(error: Exception) -> bool:
    """Whether such a record may be the cause of an error of Spark."""
    return isinstance(error, JAVA_ERRORS) and _OVERFLOW in java_trace(error)


def find(
    broker: Broker, topic: str, ranges: Ranges, check: Callable[[], None]
) -> dict[int, list[Span]]:
    """Find such records: ranges of offsets by partition that contain all of them.

    Records close to each other share a range, as long as one range of each partition fits into
    the driver's memory together. ``check`` is called regularly, and may raise to stop the search.

    Raises:
        ServiceUnavailable: The broker does not deliver records.
    """
    most_records = max(_MOST_RECORDS // max(len(ranges), 1), 1)
    most_bytes = _MOST_BYTES // max(len(ranges), 1)
    found = {}
    for partition, (first, end) in ranges.items():
        if first < end:
            messages = broker.messages(topic, partition, first, end)
            places = _places(messages, check)
            if spans := spans_of(places, most_records, most_bytes):
                found[partition] = spans
    return found


def note(found: Spans) -> str:
    """The message for users about the result of :func:`find`."""
    partition, spans = min(found.items())
    return (
        "records have a timestamp out of Spark's range, the first at partition "
        f"{partition} offset {spans[0][0]}: they are quarantined"
    )


def spans_of(places: Iterable[Place], most_records: int, most_bytes: int) -> list[Span]:
    """Ranges of offsets that contain all records with a timestamp out of range.

    ``places`` are the records of a partition, in order; ``most_records`` is the maximum number of
    offsets in a range, ``most_bytes`` the maximum bytes of one with more than one record.
    """
    found: list[Span] = []
    size = between = 0
    for place in places:
        between += place.size
        if place.fits:
            continue
        first, end = found[-1] if found else (place.offset, place.offset)
        here = place.offset + 1
        if place.offset - end > _NEAR:
            found.append((place.offset, here))
            size = place.size
        elif found and here - first <= most_records and size + between <= most_bytes:
            found[-1] = (first, here)
            size += between
        elif found and here - end <= most_records and between <= most_bytes:
            found.append((end, here))
            size = between
        else:
            found.append((place.offset, here))
            size = place.size
        between = 0
    return found


def parts(
    ranges: Ranges, found: Spans, newest_first: bool = False
) -> Iterator[tuple[dict[int, Span], bool]]:
    """Split ranges of offsets into parts that can be read one after the other.

    ``found`` is from :func:`find`; ``newest_first`` starts at the ends of the ranges.

    Returns:
        The ranges of a part by partition, and whether Spark cannot read it.
    """
    left: list[tuple[int, deque[tuple[Span, bool]]]] = []
    for partition, span in ranges.items():
        pieces = _pieces(span, found.get(partition, ()))
        left.append((partition, deque(reversed(pieces) if newest_first else pieces)))
    while any(pieces for _, pieces in left):
        # Read readable ranges of all partitions first, then the unreadable ones together.
        for is_unreadable in (False, True):
            part = {
                partition: pieces.popleft()[0]
                for partition, pieces in left
                if pieces and pieces[0][1] is is_unreadable
            }
            if part:
                yield part, is_unreadable
                break


def rows(spark: SparkSession, broker: Broker, topic: str, ranges: Ranges) -> DataFrame:
    """Read records in the driver, as rows of Spark's Kafka source.

    ``ranges``, by partition, must fit into the driver's memory.

    Returns:
        ``validation.KAFKA_ROWS``, with null for a timestamp out of range, and
        ``validation.REFUSED``.

    Raises:
        ServiceUnavailable: The broker does not deliver records.
    """
    read = [
        _row(message)
        for partition, (first, end) in ranges.items()
        for message in broker.messages(topic, partition, first, end)
    ]
    # As microseconds: Python's datetime ends with the year 9999.
    found = spark.createDataFrame(read, _ROWS)
    return found.withColumn("timestamp", F.timestamp_micros("micros")).drop("micros")


def _pieces(span: Span, unreadable: Iterable[Span]) -> list[tuple[Span, bool]]:
    """A range split at unreadable ranges; with each piece, whether it is unreadable."""
    here, end = span
    found: list[tuple[Span, bool]] = []
    for first, behind in unreadable:
        found += [((here, first), False), ((first, behind), True)]
        here = behind
    found.append(((here, end), False))
    return [piece for piece in found if piece[0][0] < piece[0][1]]


def _places(messages: Iterable[Message], check: Callable[[], None]) -> Iterator[Place]:
    for number, message in enumerate(messages):
        if number % _CHECK_EACH == 0:
            check()
        # The length of a message is that of its value.
        size = len(message) + len(message.key() or b"")
        yield Place(message.offset() or 0, size, fits(_milliseconds(message)))


def fits(milliseconds: int) -> bool:
    """Whether a time in milliseconds since 1970 is in the range of Spark's timestamp."""
    return abs(milliseconds) <= _LARGEST_MS


def _milliseconds(message: Message) -> int:
    kind, milliseconds = message.timestamp()
    # The Java consumer returns -1 for a record without a timestamp.
    return -1 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds


def _row(message: Message) -> tuple[Any, ...]:
    """A record in the order of ``_ROWS``."""
    milliseconds = _milliseconds(message)
    is_in_range = fits(milliseconds)
    text = (
        f"timestamp {milliseconds} is out of the range of Spark's timestamp: its unit is "
        "probably not milliseconds"
    )
    why = ("timestamp", "timestamp_out_of_range", text)
    return (
        message.key(),
        message.value(),
        message.topic(),
        message.partition(),
        message.offset(),
        # No headers are null in Spark's rows.
        message.headers() or None,
        milliseconds * 1000 if is_in_range else None,
        None if is_in_range else why,
    )
