"""Framing: how a record identifies its writer schema.

A framing cannot be detected from bytes, because several are byte-identical: each source declares
that of its values and of its keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

Part = Literal["value", "key"]
Ids = Literal["registry", "global", "content", "glue"]
"""The kind of schema ids: of the Confluent API, Apicurio's of versions or contents, or Glue's."""


def header(schema_id: int) -> bytes:
    """The five bytes before the Avro binary of a record in Confluent framing."""
    return b"\x00" + schema_id.to_bytes(4, "big")


@dataclass(frozen=True)
class Framing:
    """The declared framing of values or keys.

    Attributes:
        name: Its name in the source.
        format: Format of the payload.
        id_bytes: Length of the schema id, big-endian; 0 without ids.
        ids: The kind of ids.
        in_header: Whether the id is in a Kafka header; otherwise it precedes the payload.
        marker: The bytes before such an id.
        skipped: The number of bytes between such an id and the payload.
        may_be_compressed: Whether it is read from ``_<part>_inflated``, the uncompressed bytes.
        title: Its name in messages.
    """

    name: str
    format: Literal["avro", "json", "string", "bytes"]
    id_bytes: int = 0
    ids: Ids = "registry"
    in_header: bool = False
    marker: bytes = b"\x00"
    skipped: int = 0
    may_be_compressed: bool = False
    title: str = ""

    @property
    def has_ids(self) -> bool:
        """Whether a record has a schema id; if not, the source declares the only schema."""
        return self.id_bytes > 0

    @property
    def begin(self) -> int:
        """The number of bytes before the payload."""
        if not self.has_ids or self.in_header:
            return 0
        return len(self.marker) + self.id_bytes + self.skipped

    def column(self, part: Part) -> str:
        """The name of the column with the framed bytes."""
        return f"_{part}_inflated" if self.may_be_compressed else f"_kafka_{part}"

    def header(self, part: Part) -> str:
        """The name of the header with the id."""
        return f"apicurio.{part}.{self.ids}Id"

    def has_schema(self, part: Part, schema_id: int) -> Column:
        """Whether the value or key has this schema id (boolean; null for null).

        Without ids every non-null value has the one schema.
        """
        if not self.has_ids:
            return F.col(f"_kafka_{part}").isNotNull()
        number = schema_id.to_bytes(self.id_bytes, "big")
        if self.in_header:
            return self._header(part) == F.lit(number)
        framed = F.col(self.column(part))
        begins = F.startswith(framed, F.lit(self.marker + number))
        return begins & (F.length(framed) >= self.begin) if self.skipped else begins

    def schema_id(self, part: Part, known: Iterable[int]) -> Column:
        """The schema id of each value or key.

        ``known`` ids are compared as bytes first, which is cheaper than decoding a number.

        Returns:
            bigint; null if the value is null or not framed, or the framing has no ids.
        """
        if not self.has_ids:
            return F.lit(None).cast("bigint")
        found = self._read_id(part)
        for number in sorted(known, reverse=True):
            found = F.when(self.has_schema(part, number), F.lit(number).cast("bigint")).otherwise(
                found
            )
        return found

    def payload(self, part: Part) -> Column:
        """The bytes after the framing."""
        if not self.begin:
            return F.col(f"_kafka_{part}")
        return F.expr(f"substring({self.column(part)}, {self.begin + 1})")

    def _read_id(self, part: Part) -> Column:
        framed = F.col(self.column(part))
        if self.in_header:
            number = self._header(part)
            is_framed = framed.isNotNull() & (F.length(number) == self.id_bytes)
        else:
            number = F.substring(framed, len(self.marker) + 1, self.id_bytes)
            is_framed = F.startswith(framed, F.lit(self.marker)) & (F.length(framed) >= self.begin)
        # Eight bytes may exceed a bigint, but such ids do not exist.
        value = F.conv(F.hex(number), 16, 10).try_cast("bigint")
        return F.when(is_framed, F.coalesce(value, F.lit(2**63 - 1)))

    def _header(self, part: Part) -> Column:
        name = F.lit(self.header(part))
        named = F.filter("_kafka_headers", lambda each: each["key"] == name)
        # As in Kafka, the last of several headers with the same key counts.
        return F.try_element_at(named, F.lit(-1))["value"]


CONFLUENT = Framing("confluent", "avro", 4, title="Confluent framing")
# AWS Glue Schema Registry: a version, the compression, the UUID of the schema's version. Its first
# seven bytes, of which 52 bits are random, identify it here, since they fit a bigint.
GLUE = Framing(
    "glue",
    "avro",
    7,
    "glue",
    marker=b"\x03\x00",
    skipped=9,
    may_be_compressed=True,
    title="framing of Glue Schema Registry, or its compressed bytes are invalid or too long",
)


AVRO = Framing("avro", "avro")
JSON = Framing("json", "json")
STRING = Framing("string", "string")
BYTES = Framing("bytes", "bytes")


def apicurio(ids: Ids) -> Framing:
    """Apicurio's own framing: a zero byte, an 8-byte id, the Avro binary."""
    return Framing("apicurio", "avro", 8, ids, title="8-byte Apicurio framing")


def apicurio_headers(ids: Ids) -> Framing:
    """Apicurio's ids in Kafka headers; the bytes are the bare Avro binary."""
    title = f"header with an Apicurio {ids} id"
    return Framing("apicurio-headers", "avro", 8, ids, in_header=True, title=title)


def framing_named(name: str, ids: Ids) -> Framing:
    """The framing with a declared name; ``ids`` is the kind of Apicurio's ids."""
    if name == "apicurio":
        return apicurio(ids)
    if name == "apicurio-headers":
        return apicurio_headers(ids)
    return {each.name: each for each in (CONFLUENT, GLUE, AVRO, JSON, STRING, BYTES)}[name]
