"""Random topics of Avro: what their values and keys are, and records of these."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field
from typing import Any

from spark_ingest.avro import framing
from spark_ingest.avro.framing import Framing
from tests.python.spark.avro_random import Writer, damaged
from tests.python.spark.avro_reference import contains_itself, names_again, resolved
from tests.python.spark.avro_schemas import Schemas

FRAMINGS = (
    framing.CONFLUENT,
    framing.apicurio("global"),
    framing.apicurio_headers("content"),
    framing.AVRO,
    framing.apicurio("content"),
    framing.apicurio_headers("global"),
    framing.GLUE,
)
Header = tuple[str, bytes]


@dataclass
class Part:
    """The values of a topic, or its keys.

    Attributes:
        name: Which of the two.
        framing: How they name their schema.
        ids: Of the schemas.
        versions: The schemas, as they are registered.
        schemas: Them, resolved.
        texts: The columns that are JSON text.
        reuses: Of each of the schemas, whether a type is named in it where it is not defined.
    """

    name: framing.Part
    framing: Framing
    ids: list[int]
    versions: list[Any]
    schemas: list[Any] = field(init=False)
    texts: set[str] = field(init=False)
    reuses: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.schemas = [resolved(each) for each in self.versions]
        self.reuses = [names_again(each) for each in self.versions]
        kinds: list[tuple[str, Any]] = []
        for schema in self.schemas:
            fields = [(each["name"], each["type"]) for each in record_of(schema)]
            kinds += fields or [("value", schema)]
        self.texts = {name for name, kind in kinds if contains_itself(kind)}

    @property
    def is_record(self) -> bool:
        """Whether they are records, or null."""
        return bool(record_of(self.schemas[0]))


@dataclass(frozen=True)
class Sent:
    """A record of Kafka, and whether it was left sound."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]
    is_sound: bool


def record_of(schema: Any) -> list[Any]:
    """The fields of a record or of a union of one and null; none of anything else."""
    if isinstance(schema, list) and len(schema) == 2 and "null" in schema:
        schema = schema[1 - schema.index("null")]
    is_record = isinstance(schema, dict) and schema["type"] == "record"
    return list(schema["fields"]) if is_record else []


def topic(chance: random.Random, number: int) -> list[Part]:
    """Values and, of two topics in three, keys: by its number all kinds have their turn."""
    value_framing = FRAMINGS[number % len(FRAMINGS)]
    versions = chance.randint(2, 3) if value_framing.has_ids else 1
    # Each framing meets all of the rest, sooner or later.
    recursive = (number + number // len(FRAMINGS)) % 2 == 0
    schemas = Schemas(chance)
    if number % 7 == 6:
        written = schemas.of_others(versions, recursive)
    else:
        written = schemas.of_records(versions, recursive, number % 5 == 4)
    value = _part(chance, "value", value_framing, written)
    if number % 3 == 2:
        return [value]
    turn = number - number // 3
    key_framing = FRAMINGS[-1 - (turn + turn // len(FRAMINGS)) % len(FRAMINGS)]
    versions = 2 if key_framing.has_ids else 1
    schemas = Schemas(chance)
    if turn % 3 == 0:
        written = schemas.of_records(versions, turn % 2 == 0, turn % 5 == 4)
    else:
        written = schemas.of_others(versions, turn % 4 == 1)
    return [value, _part(chance, "key", key_framing, written)]


def _part(chance: random.Random, name: framing.Part, framed: Framing, versions: list[Any]) -> Part:
    if not framed.has_ids:
        return Part(name, framed, [0], versions)
    # Whatever is no bigint counts as the largest: that one is no id.
    most = 2 ** (8 * framed.id_bytes - 1) - 1
    ids = chance.sample([1, 2, 3, 255, most - 1, chance.randrange(4, most)], len(versions))
    return Part(name, framed, ids, versions)


def sent(chance: random.Random, topic_parts: list[Part], count: int) -> list[Sent]:
    """Records of all versions in turn: a third sound, the others damaged in either way."""
    sound, harmful = Writer(chance, 0), Writer(chance, 0.03)
    found = []
    for number in range(count):
        headers = [("other", b"\x00")]
        parts: dict[str, bytes | None] = {"value": None, "key": None}
        # Mostly one of the two, or few keys would be looked at.
        harmed = chance.choice((("value",), ("key",), ("key", "value")))
        for part in topic_parts:
            if chance.random() < 0.02:
                continue
            at = number % len(part.versions)
            schema = part.schemas[at]
            way = number % 3 if not topic_parts[1:] or part.name in harmed else 0
            payload = (harmful if way == 1 else sound).value(schema)
            if way == 2:
                payload = damaged(chance, payload, sound.value(schema))
            framed, more = _framed(chance, part, at, payload)
            if way and chance.random() < 0.04:
                framed, more = _misframed(chance, part, framed, more)
            parts[part.name] = framed
            headers += more
        found.append(Sent(parts["key"], parts["value"], headers, number % 3 == 0))
    return found


def _framed(
    chance: random.Random, part: Part, at: int, payload: bytes
) -> tuple[bytes, list[Header]]:
    if not part.framing.has_ids:
        return payload, []
    number = part.ids[at].to_bytes(part.framing.id_bytes, "big")
    if part.framing.in_header:
        return payload, [(f"apicurio.{part.name}.{part.framing.ids}Id", number)]
    if part.framing is framing.GLUE:
        is_compressed = chance.random() < 0.5
        marker = b"\x03\x05" if is_compressed else b"\x03\x00"
        payload = zlib.compress(payload) if is_compressed else payload
        return marker + number + bytes(9) + payload, []
    return b"\x00" + number + payload, []


def _misframed(
    chance: random.Random, part: Part, framed: bytes, headers: list[Header]
) -> tuple[bytes, list[Header]]:
    """Bytes and headers that carry no id, or one that nobody knows."""
    size = part.framing.id_bytes
    if headers:
        (name, number) = headers[0]
        return framed, chance.choice(
            [
                [],
                [(name, number[1:])],
                [(name, number + b"\x00")],
                [(name.replace("Id", "ID"), number)],
                [(name, chance.randbytes(size))],
            ]
        )
    if not size:
        return framed, headers
    begin = len(part.framing.marker)
    ways = [
        b"\x01" + framed[1:],
        framed[: chance.randint(0, size)],
        framed[:begin] + chance.randbytes(size) + framed[begin + size :],
    ]
    if part.framing is framing.GLUE:
        # Another compression, or a stream that lacks its end or has bytes behind it.
        ways += [b"\x03\x01" + framed[2:], framed[:-1], framed + b"\x00"]
    return chance.choice(ways), headers
