"""Framing: how a record's bytes tell which schema wrote them.

Confluent's wire format is one zero byte, a 4-byte big-endian schema id, then the Avro
binary. A framing cannot be guessed from bytes, so each source declares its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

HEADER_BYTES = 5


def header(schema_id: int) -> bytes:
    """The five bytes before the Avro binary of a record written with this schema."""
    return b"\x00" + schema_id.to_bytes(4, "big")


def has_schema(framed: str, schema_id: int) -> Column:
    """Whether a binary column's value carries this schema id (boolean; null stays null)."""
    return F.startswith(F.col(framed), F.lit(header(schema_id)))


def schema_id(framed: str, known: Iterable[int]) -> Column:
    """The schema id that each value carries.

    Args:
        framed: Name of a binary column in Confluent framing.
        known: Ids to look for first: comparing a prefix costs nothing, reading a number does.

    Returns:
        bigint, 0 to 2**32 - 1; null where the value is null or not framed.
    """
    found = F.when(
        (F.length(framed) >= HEADER_BYTES)
        & F.startswith(F.col(framed), F.lit(b"\x00")),
        F.conv(F.hex(F.substring(F.col(framed), 2, 4)), 16, 10).cast("bigint"),
    )
    for number in sorted(known, reverse=True):
        found = F.when(
            has_schema(framed, number), F.lit(number).cast("bigint")
        ).otherwise(found)
    return found


def payload(framed: str) -> Column:
    """The bytes behind the framing of a binary column."""
    return F.expr(f"substring({framed}, {HEADER_BYTES + 1})")
