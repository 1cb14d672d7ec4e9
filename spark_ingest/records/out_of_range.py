"""Records whose time Spark cannot hold: found and read by a plain consumer.

Spark's Kafka source makes microseconds of a record's milliseconds and ends the task at the
first record whose microseconds take more than 64 bits; none of its options passes over one.
What lies between such records is still read by Spark.
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
# To read so many records more without Spark costs less than a commit between two others.
_NEAR = 1000
# What is read without Spark passes through the memory of the driver.
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
    """A record, as far as it matters where it can be read.

    Attributes:
        size: Bytes of its key and value.
        fits: Whether Spark can hold its time.
    """

    offset: int
    size: int
    fits: bool


def may_be_cause_of(error: Exception) -> bool:
    """Whether an error of Spark's may come from such a record; only reading them shows it."""
    return isinstance(error, JAVA_ERRORS) and _OVERFLOW in java_trace(error)


def find(
    broker: Broker, topic: str, ranges: Ranges, check: Callable[[], None]
) -> dict[int, list[Span]]:
    """Where such records are, by partition: ranges of offsets that hold all of them.

    Those that are near each other share one, as far as the records of one from each partition
    fit into the driver's memory together. ``check`` is called now and then, so that it can
    raise what ends the search.

    Raises:
        ServiceUnavailable: The broker does not deliver.
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
    """What :func:`find` found, for people."""
    partition, spans = min(found.items())
    return (
        "records have a timestamp that Spark cannot hold, the first at partition "
        f"{partition} offset {spans[0][0]}: they go to quarantine"
    )


def spans_of(places: Iterable[Place], most_records: int, most_bytes: int) -> list[Span]:
    """Ranges of offsets that hold all records whose time Spark cannot hold.

    ``places`` are the records of a partition, in order; ``most_records`` is the most offsets of
    a range, ``most_bytes`` the most bytes of one with more than one record.
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
    """Ranges of offsets in the parts in which they can be read, one after the other.

    ``found`` is where in them Spark cannot read, as :func:`find` gives it; ``newest_first``
    begins at their ends.

    Returns:
        By partition the range that a part takes, and whether Spark cannot read it.
    """
    left: list[tuple[int, deque[tuple[Span, bool]]]] = []
    for partition, span in ranges.items():
        pieces = _pieces(span, found.get(partition, ()))
        left.append((partition, deque(reversed(pieces) if newest_first else pieces)))
    while any(pieces for _, pieces in left):
        # A partition that waits at such a record waits until all others do.
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
    """Records as Spark's Kafka source gives them, read without it.

    ``ranges`` are by partition, no more than the driver's memory takes.

    Returns:
        ``validation.KAFKA_ROWS``, in which a time that Spark cannot hold is null, and
        ``validation.REFUSED``.

    Raises:
        ServiceUnavailable: The broker does not deliver.
    """
    read = [
        _row(message)
        for partition, (first, end) in ranges.items()
        for message in broker.messages(topic, partition, first, end)
    ]
    # As microseconds: Python's own times end with the year 9999.
    made = spark.createDataFrame(read, _ROWS)
    return made.withColumn("timestamp", F.timestamp_micros("micros")).drop("micros")


def _pieces(span: Span, odd: Iterable[Span]) -> list[tuple[Span, bool]]:
    """A range cut where Spark cannot read; whether it is such a piece stands beside each."""
    here, end = span
    found: list[tuple[Span, bool]] = []
    for first, behind in odd:
        found += [((here, first), False), ((first, behind), True)]
        here = behind
    found.append(((here, end), False))
    return [piece for piece in found if piece[0][0] < piece[0][1]]


def _places(messages: Iterable[Message], check: Callable[[], None]) -> Iterator[Place]:
    for number, message in enumerate(messages):
        if number % _CHECK_EACH == 0:
            check()
        # A message's own length is that of its value.
        size = len(message) + len(message.key() or b"")
        yield Place(message.offset() or 0, size, fits(_milliseconds(message)))


def fits(milliseconds: int) -> bool:
    """Whether a timestamp of Spark holds a time in milliseconds since 1970."""
    return abs(milliseconds) <= _LARGEST_MS


def _milliseconds(message: Message) -> int:
    kind, milliseconds = message.timestamp()
    # What Java's consumer gives for a record without a time.
    return -1 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds


def _row(message: Message) -> tuple[Any, ...]:
    """A record in the order of ``_ROWS``."""
    milliseconds = _milliseconds(message)
    is_held = fits(milliseconds)
    text = (
        f"timestamp {milliseconds} is outside of what a Spark timestamp holds: likely of "
        "another unit than milliseconds"
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
        milliseconds * 1000 if is_held else None,
        None if is_held else why,
    )
