"""The ways in which a record can be broken on purpose, so that no reader may decode it."""

from __future__ import annotations

from collections.abc import Callable

from sandbox.streams.avro_bytes import frame

Random = Callable[[], float]
"""Draws a number in [0, 1); seeded, so that the same run breaks the same way."""

# Far beyond what a registry that counts from one has handed out. One id, not many:
# a reader may ask the registry again and again for each id that it does not know.
UNKNOWN_SCHEMA_ID = 2_000_000_000
FRAME_LENGTH = 5


def _truncated(random: Random, value: bytes) -> bytes:
    """The body ends early: at least one byte of it is missing."""
    return value[: FRAME_LENGTH + int(random() * (len(value) - FRAME_LENGTH))]


def _garbage(random: Random, value: bytes) -> bytes:
    """Random bytes after a right id, each with its top bit set: no integer ends in them."""
    noise = bytes(128 + int(random() * 128) for _ in range(24 + int(random() * 41)))
    return value[:FRAME_LENGTH] + noise


def _unknown_schema(_random: Random, value: bytes) -> bytes:
    """A whole body after an id that the registry does not know."""
    return frame(UNKNOWN_SCHEMA_ID) + value[FRAME_LENGTH:]


def _too_short(random: Random, value: bytes) -> bytes:
    """One to four bytes: no room for the framing."""
    return value[: 1 + int(random() * (FRAME_LENGTH - 1))]


def _left_over(random: Random, value: bytes) -> bytes:
    """One to eight bytes more than the schema reads."""
    return value + bytes(int(random() * 256) for _ in range(1 + int(random() * 8)))


def _no_magic(_random: Random, value: bytes) -> bytes:
    """The body with no framing at all, as a JSON producer on the wrong topic sends it."""
    return b'{"payload": "' + value[FRAME_LENGTH:].hex().encode() + b'"}'


FAULTS: dict[str, Callable[[Random, bytes], bytes]] = {
    "truncated": _truncated,
    "garbage": _garbage,
    "unknown_schema": _unknown_schema,
    "too_short": _too_short,
    "left_over": _left_over,
    "no_magic": _no_magic,
}
"""Each fault by name: from a well-formed framed value to one that must not decode."""
