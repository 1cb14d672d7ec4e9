"""Read the rows of a published topic: the newest record of each key."""

from __future__ import annotations

from spark_ingest.avro.framing import header
from spark_ingest.connect.broker import Broker, Topic
from spark_ingest.publish.publications import Envelope

_HEADER = len(header(0))
# Bytes of an Avro string of one character: length and character.
_OP = 2
_MORE = 0x80


def read_rows(broker: Broker, topic: Topic, envelope: Envelope) -> dict[bytes, bytes]:
    """Read the current rows of a topic, by key, into memory.

    Returns:
        Header with schema id and Avro binary of the row, by that of the key.
    """
    rows: dict[bytes, bytes] = {}
    begins, ends = broker.first_offsets(topic), broker.end_offsets(topic)
    for partition in topic.partitions:
        for record in broker.messages(topic.name, partition, begins[partition], ends[partition]):
            key, value = record.key() or b"", record.value()
            row = value if envelope == "upsert" or value is None else _row(value)
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = row
    return rows


def change_value(row: bytes, op: str, committed_at: int) -> bytes:
    """Encode the value of a change.

    ``row`` is header and Avro binary of the row, ``op`` one character, ``committed_at`` in
    milliseconds since 1970.
    """
    number = committed_at << 1
    time = bytearray()
    while number >= _MORE:
        time.append(number & 0x7F | _MORE)
        number >>= 7
    time.append(number)
    return row[:_HEADER] + b"\x02" + op.encode() + bytes(time) + row[_HEADER:]


def _row(value: bytes) -> bytes | None:
    """The row of a change; None for a delete."""
    if value[_HEADER + 1 : _HEADER + _OP] == b"d":
        return None
    at = _HEADER + _OP
    while value[at] & _MORE:
        at += 1
    return value[:_HEADER] + value[at + 1 :]
