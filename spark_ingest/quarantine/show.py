"""Show quarantined records: counts by reason, and the details of one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from spark_ingest.errors import ConfigurationError
from spark_ingest.quarantine.choice import Choice, rows_of
from spark_ingest.sources import Stream

_BYTES_SHOWN = 160
_PER_LINE = 16
_HEADERS_SHOWN = 5
_TEXT_SHOWN = 300
_TIMES = ("_kafka_timestamp", "_ingested_at", "replayed_at", "discarded_at")


@dataclass(frozen=True)
class Group:
    """Quarantined records of one topic with one reason.

    Attributes:
        stream: The stream's name; empty if no source declares the topic.
        stage: The stage at which they failed.
        error_class: The reason.
        open: Number of records neither replayed nor discarded.
        replayed: Number of replayed records.
        discarded: Number of discarded records.
        first: ``partition:offset`` of the record quarantined first.
        last: ``partition:offset`` of the record quarantined last.
        oldest: Time at which the first was quarantined, UTC, as text.
        newest: Time at which the last was quarantined.
        sample: Error message of the newest.
    """

    stream: str
    topic: str
    stage: str
    error_class: str
    open: int
    replayed: int
    discarded: int
    first: str
    last: str
    oldest: str
    newest: str
    sample: str


def groups(
    spark: SparkSession,
    streams: Sequence[Stream],
    choice: Choice,
    everywhere: bool,
    *,
    replayed: bool,
) -> list[Group]:
    """Count quarantined records by topic and reason.

    ``everywhere`` includes topics that no source declares, ``replayed`` replayed records.
    """
    names = {stream.topic: stream.name for stream in streams}
    rows = choice.of(rows_of(spark, list(names), everywhere))
    if not replayed:
        rows = rows.where("replayed_at is null")
    place = F.struct("_ingested_at", "_kafka_partition", "_kafka_offset")
    is_open = F.col("replayed_at").isNull() & F.col("discarded_at").isNull()
    by = ["_kafka_topic", "stage", "error_class"]
    found = (
        rows.groupBy(*by)
        .agg(
            F.count_if(is_open).alias("open"),
            F.count("replayed_at").alias("replayed"),
            F.count_if(F.col("discarded_at").isNotNull() & F.col("replayed_at").isNull()).alias(
                "discarded"
            ),
            F.min(place).alias("first"),
            F.max(place).alias("last"),
            _time(F.min("_ingested_at")).alias("oldest"),
            _time(F.max("_ingested_at")).alias("newest"),
            F.max_by("error_message", place).alias("sample"),
        )
        .orderBy(*by)
        .collect()
    )
    return [
        Group(
            stream=names.get(row["_kafka_topic"], ""),
            topic=row["_kafka_topic"],
            stage=row["stage"],
            error_class=row["error_class"],
            open=row["open"],
            replayed=row["replayed"],
            discarded=row["discarded"],
            first=_position(row["first"]),
            last=_position(row["last"]),
            oldest=row["oldest"],
            newest=row["newest"],
            sample=row["sample"],
        )
        for row in found
    ]


def record(spark: SparkSession, topic: str, partition: int, offset: int) -> tuple[Row, int]:
    """The newest quarantined record at a position, and the number of records at it.

    There may be several if the topic was recreated.

    Raises:
        ConfigurationError: There is none.
    """
    rows = rows_of(spark, [topic], False).where(
        (F.col("_kafka_partition") == partition) & (F.col("_kafka_offset") == offset)
    )
    return _newest(rows, f"{topic} partition {partition} offset {offset}")


def newest_record(
    spark: SparkSession, streams: Sequence[Stream], choice: Choice, everywhere: bool
) -> tuple[Row, int]:
    """The newest of the selected records, and their number.

    Raises:
        ConfigurationError: There is none, or the condition is invalid.
    """
    rows = choice.of(rows_of(spark, [s.topic for s in streams], everywhere))
    return _newest(rows, "this selection")


def screen(row: Row, count: int) -> list[str]:
    """The output lines for a quarantined record, at most a screen.

    ``count`` is the number of selected records, mentioned if there are several.
    """
    place = (
        f"{row['_kafka_topic']} partition {row['_kafka_partition']} offset {row['_kafka_offset']}"
    )
    lines = [
        f"position   {place}",
        f"topic id   {row['_kafka_topic_id']}",
        f"written    {_written(row['_kafka_timestamp'])}",
        f"ingested   {row['_ingested_at']} UTC",
        f"reason     {row['stage']}: {row['error_class']}",
        f"           {_short(row['error_message'])}",
        f"schema id  {'none' if row['_schema_id'] is None else row['_schema_id']}",
    ]
    if row["replayed_at"] is not None:
        lines.append(f"replayed   {row['replayed_at']} UTC: the record is in bronze")
    if row["discarded_at"] is not None:
        why = _short(row["discard_reason"] or "")
        lines.append(f"discarded  {row['discarded_at']} UTC: {why}")
    headers = row["_kafka_headers"] or []
    for header in headers[:_HEADERS_SHOWN]:
        value = header["value"]
        text = "null" if value is None else _text(bytes(value[: _PER_LINE * 4]))
        lines.append(f"header     {_short(header['key'])}: {text}")
    if len(headers) > _HEADERS_SHOWN:
        lines.append(f"           and {len(headers) - _HEADERS_SHOWN} more headers")
    lines += _dump("key", row["_kafka_key"], _BYTES_SHOWN // 5)
    lines += _dump("value", row["_kafka_value"], _BYTES_SHOWN)
    if count > 1:
        lines.append(f"This is the newest of {count:,} records.")
    return lines


def _newest(rows: DataFrame, what: str) -> tuple[Row, int]:
    count = rows.count()
    order = ["_ingested_at", "_kafka_partition", "_kafka_offset"]
    newest = rows.orderBy(*(F.col(name).desc() for name in order)).limit(1)
    row = newest.withColumns({name: _time(name) for name in _TIMES}).first()
    if row is None:
        raise ConfigurationError(
            f"no record in quarantine for {what}: `spark-ingest quarantine list` lists all"
        )
    return row, count


def _position(place: Row) -> str:
    return f"{place['_kafka_partition']}:{place['_kafka_offset']}"


def _time(moment: Column | str) -> Column:
    # Formatted in Spark, in UTC: Python would convert it to the local time zone.
    return F.date_format(moment, "yyyy-MM-dd HH:mm:ss.SSS")


def _written(moment: str | None) -> str:
    # A timestamp out of Spark's range is in the reason.
    return "none" if moment is None else f"{moment} UTC"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_SHOWN else f"{line[: _TEXT_SHOWN - 1]}…"


def _text(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


def _dump(name: str, value: bytes | None, most: int) -> list[str]:
    """A hex dump: lines with offset, hex and text."""
    if value is None:
        return [f"{name:<10} null"]
    data = bytes(value)
    lines = [f"{name:<10} {len(data):,} bytes"]
    for start in range(0, min(len(data), most), _PER_LINE):
        piece = data[start : start + _PER_LINE]
        pairs = piece.hex(" ")
        lines.append(f"  {start:06x}   {pairs:<{3 * _PER_LINE}} {_text(piece)}")
    if len(data) > most:
        lines.append(f"           and {len(data) - most:,} more bytes: --out FILE writes them")
    return lines
