"""A loop in Python: librdkafka, fastavro, and pyiceberg for the table.

usage: python -m bench.ingest.jobs.python_consumer SERVERS TOPIC SCHEMAS CATALOG WAREHOUSE TABLE
"""

from __future__ import annotations

import io
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicPartition
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from bench.ingest.jobs import marks
from bench.ingest.jobs.one_table import OneFileCatalog

_COMMIT_RECORDS = 250_000
_FETCH_RECORDS = 50_000
_FRAME_BYTES = 5
_TIMES = ("timestamp-micros", "timestamp-millis")
_TYPES: dict[str, IcebergType] = {
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
}
_PLACE: list[tuple[str, IcebergType]] = [
    ("_partition_number", IntegerType()),
    ("_offset", LongType()),
    ("_written_at", TimestamptzType()),
]


def main(servers: str, topic: str, schemas: str, catalog: str, warehouse: str, table: str) -> None:
    """Read the whole topic once.

    Args:
        servers: The broker.
        topic: What to read.
        schemas: Folder of the writers' schemas, each in a file named by its id.
        catalog: The catalog's SQLite file.
        warehouse: Folder for the table.
        table: ``schema.name``.
    """
    read = {int(file.stem): json.loads(file.read_text()) for file in Path(schemas).glob("*.avsc")}
    newest = read[max(read)]
    writers = {number: fastavro.parse_schema(schema) for number, schema in read.items()}
    reader = fastavro.parse_schema(newest)
    columns = [(field["name"], iceberg_type(field["type"])) for field in newest["fields"]]
    filled = OneFileCatalog(Path(catalog), Path(warehouse)).create_table(
        table,
        Schema(
            *(
                NestedField(number, name, kind, required=False)
                for number, (name, kind) in enumerate([*columns, *_PLACE], 1)
            )
        ),
    )
    marks.begin()
    rows: list[dict[str, Any]] = []
    for messages in _batches(servers, topic):
        for message in messages:
            value = message.value()
            # What it cannot read it passes over: such loops do.
            if value is None or len(value) <= _FRAME_BYTES:
                continue
            try:
                writer = writers[struct.unpack_from(">I", value, 1)[0]]
                row = fastavro.schemaless_reader(io.BytesIO(value[_FRAME_BYTES:]), writer, reader)
            # Bytes that are no Avro raise whatever the decoder stumbles over.
            except (ValueError, LookupError, EOFError, TypeError, OverflowError):
                continue
            if not isinstance(row, dict):
                continue
            row["_partition_number"] = message.partition()
            row["_offset"] = message.offset()
            row["_written_at"] = message.timestamp()[1] * 1000
            rows.append(row)
        if len(rows) >= _COMMIT_RECORDS:
            _append(filled, rows)
            rows = []
    if rows:
        _append(filled, rows)
    marks.end()


def iceberg_type(avro: Any) -> IcebergType:
    """The column type of a field of the benchmark's records.

    Args:
        avro: Its Avro type: a primitive, a decimal, a time, or null and one of these.
    """
    if isinstance(avro, list):
        return iceberg_type(next(each for each in avro if each != "null"))
    if isinstance(avro, dict):
        if avro.get("logicalType") == "decimal":
            return DecimalType(avro["precision"], avro["scale"])
        if avro.get("logicalType") in _TIMES:
            return TimestamptzType()
        return iceberg_type(avro["type"])
    return _TYPES[avro]


def _append(table: Table, rows: list[dict[str, Any]]) -> None:
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))


def _batches(servers: str, topic: str) -> Iterator[list[Message]]:
    # The library's own limits would make a reader this fast wait for a second now and then.
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench-python",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 8 << 20,
            "fetch.max.bytes": 64 << 20,
            "queued.max.messages.kbytes": 256 << 10,
            "queued.min.messages": 500_000,
            "fetch.queue.backoff.ms": 10,
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        left = 0
        for number in partitions:
            place = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(place, timeout=10)
            left += high - low
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        while left > 0:
            messages = consumer.consume(min(_FETCH_RECORDS, left), 1.0)
            left -= len(messages)
            yield messages
    finally:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
