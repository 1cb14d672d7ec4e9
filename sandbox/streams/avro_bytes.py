"""Avro's binary form by hand, for events made faster than a general encoder can.

Only what the generators need: each function returns the bytes of one value. The tests
hold them against fastavro.
"""

from __future__ import annotations

import struct


def frame(schema_id: int) -> bytes:
    """The five bytes before an Avro payload: a zero byte and the id, big-endian."""
    return struct.pack(">bI", 0, schema_id)


def integer(value: int) -> bytes:
    """An ``int`` or ``long``: zigzag, then seven bits a byte, the lowest first."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return bytes((rest,))
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def string(value: str) -> bytes:
    """A ``string``: its length in bytes, then UTF-8."""
    body = value.encode()
    return integer(len(body)) + body


def optional_string(value: str | None) -> bytes:
    """A ``["null", "string"]``: which branch, then the value."""
    return integer(0) if value is None else integer(1) + string(value)


def decimal(unscaled: int) -> bytes:
    """A ``bytes`` decimal: two's complement, big-endian, as few bytes as hold it."""
    body = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return integer(len(body)) + body


def boolean(value: bool) -> bytes:
    """A ``boolean``: one byte, 1 or 0."""
    return b"\x01" if value else b"\x00"
