"""Random records, many of them damaged: the engine and the specification say the same.

Fails when a value lands that its record does not hold, or a good record is quarantined.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.records.avro_check import schema_problem
from tests.python.spark.avro_columns import column, json_text, plain
from tests.python.spark.avro_reference import Branch, Damaged, Reader, breaks_type, unframed
from tests.python.spark.avro_topics import FRAMINGS, Part, Sent, sent, topic
from tests.python.spark.test_ingest_decode import ROW, validate

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
Landed = tuple[str | None, str | None, dict[str, Any]]
"""Error class and message of one that was quarantined, the columns of one that was not."""
_CLASSES = ("undecodable", "left_over_bytes", "not_framed", "unknown_id")
_IN_UNIONS = ("record", "second record", "enum", "fixed", "bytes", "array", "map")
KINDS = (
    *("good", *_CLASSES, *(f"key_{each}" for each in _CLASSES)),
    *("tombstone", "no key", "a nullable record that is null"),
    *(f"{part} in {each.name} {each.ids}" for part in ("value", "key") for each in FRAMINGS),
    *(f"{part} that is {each}" for part in ("value", "key") for each in ("a record", "none")),
    *(f"{part} as text" for part in ("value", "key")),
    *(f"{part} with a name again" for part in ("value", "key")),
    *(f"{each} in a union" for each in _IN_UNIONS),
    *(f"{each} in a union, as text" for each in _IN_UNIONS),
)  # fmt: skip
"""What there must be some of, or it was not tried."""


@dataclass(frozen=True)
class Reported:
    """What the specification says of a value or key.

    Attributes:
        error_class: Why it is not good; None where it is.
        where: How the engine's message begins then.
        columns: By name, where it is good.
        at: The place of the version that wrote it; None where that is not known.
        payload: The bytes of Avro.
        value: What they say, where it is good.
    """

    error_class: str | None
    where: str = ""
    columns: dict[str, Any] = field(default_factory=dict)
    at: int | None = None
    payload: bytes = b""
    value: Any = None


@pytest.mark.nightly
def test_what_lands_is_what_the_specification_reads(spark: SparkSession) -> None:
    agree(spark, SEED, topics=5, records=1000)


@pytest.mark.long
def test_what_lands_is_what_the_specification_reads_of_many(spark: SparkSession) -> None:
    seen = agree(spark, SEED, topics=80, records=1250)
    assert not [kind for kind in KINDS if seen[kind] < 10], seen


def agree(spark: SparkSession, seed: int, topics: int, records: int) -> Counter[str]:
    """Compare this many topics' records; ``SEED`` repeats a run.

    Returns:
        How many there were of each kind.
    """
    print(f"SEED={seed}")
    seen: Counter[str] = Counter()
    for number in range(topics):
        seen += agree_on(spark, seed, number, records)
    print(dict(seen))
    for kind in ("good", "undecodable", "left_over_bytes", "in frames"):
        assert seen[kind] > topics * records // 50, seen
    return seen


def agree_on(spark: SparkSession, seed: int, number: int, records: int) -> Counter[str]:
    """Compare the records of one topic."""
    chance = random.Random(f"{seed} {number}")
    parts = topic(chance, number)
    rows = sent(chance, parts, records)
    schemas, landed = engine(spark, parts, rows)
    has_frames = not any(schema.texts for schema in schemas)
    seen: Counter[str] = Counter({"in frames": len(landed) * has_frames})
    for row, found in zip(rows, landed, strict=True):
        reported = [
            reference(part, row, schema) for part, schema in zip(parts, schemas, strict=True)
        ]
        case = partial(spelled, f"SEED={seed} topic {number}", parts, row, reported)
        seen[compare(found, reported, case)] += 1
        if any(each.error_class for each in reported):
            assert not row.is_sound, case()
            continue
        for part, each in zip(parts, reported, strict=True):
            seen.update(tried(part, each))
            if row.is_sound and each.at is not None:
                fast = fastavro.schemaless_reader(
                    io.BytesIO(each.payload), bare(part.versions[each.at]), None
                )
                assert repr(untagged(each.value)) == repr(fast), case()
    return seen


def spelled(where: str, parts: list[Part], row: Sent, reported: list[Reported]) -> str:
    """A record and its schemas, to see them."""
    written = [
        f"{part.name}: {json.dumps(part.versions[each.at])}"
        for part, each in zip(parts, reported, strict=True)
        if each.at is not None
    ]
    return "\n".join([f"{where}: {row}", *written])


def compare(found: Landed, reported: list[Reported], case: Callable[[], str]) -> str:
    """Compare what became of a record with what is said of its value and of its key.

    Returns:
        Its class.
    """
    error_class, message, columns = found
    for prefix, each in zip(("", "key_"), reported, strict=False):
        if each.error_class:
            wrong = prefix + each.error_class
            assert error_class == wrong, f"{message}; {case()}"
            assert re.match(each.where, message or ""), f"{message}; {case()}"
            return wrong
    assert error_class is None, f"{error_class} {message}; {case()}"
    wanted = {name: held for each in reported for name, held in each.columns.items()}
    assert columns.keys() == wanted.keys(), case()
    for name, held in wanted.items():
        assert columns[name] == held, f"{name}: {columns[name]} for {held}; {case()}"
    return "good"


def engine(
    spark: SparkSession, parts: list[Part], rows: list[Sent]
) -> tuple[list[TopicSchema], list[Landed]]:
    """What the engine makes of a topic's schemas and of its records."""
    schemas = []
    for part in parts:
        writers = [
            WriterSchema(number, schema)
            for number, schema in zip(part.ids, part.versions, strict=True)
        ]
        schema = combine(writers, framing=part.framing, problem=schema_problem)
        assert not schema.incompatible, json.dumps(part.versions)
        assert set(schema.texts) == part.texts, json.dumps(part.versions)
        schemas.append(schema)
    records = spark.createDataFrame(
        [(r.key, r.value, "t", 0, at, None, r.headers) for at, r in enumerate(rows)], ROW
    )
    validated = validate(records, "id", schemas[0], schemas[1] if schemas[1:] else None)
    columns = [column.alias(name) for name, column in validated.columns.items()]
    table = (
        validated.records.orderBy("_kafka_offset")
        .select("_error.error_class", "_error.error_message", F.struct(*columns))
        .toArrow()
    )
    found = (list(plain(chunks.combine_chunks())) for chunks in table.columns)
    return schemas, list(zip(*found, strict=True))


def reference(part: Part, row: Sent, schema: TopicSchema) -> Reported:
    """What the specification says of a record's value or key.

    Args:
        part: Which, of which topic.
        row: The record.
        schema: The engine's: for the types of the columns alone.
    """
    data = row.value if part.name == "value" else row.key
    if data is None:
        return Reported(None, columns=columns_of(part, None, None, schema))
    framing = part.framing
    number, payload = unframed(part.name, framing.name, framing.ids, data, row.headers)
    if number is None:
        return Reported("not_framed", f"{part.name} of {len(data)} bytes has no ")
    if number not in part.ids:
        return Reported("unknown_id", f"{part.name} schema ")
    at = part.ids.index(number)
    reader = Reader(payload, part.schemas[at])
    value, wrong = None, False
    try:
        value = reader.value()
    except Damaged:
        wrong = True
    name = reader.field if wrong else ""
    for each in reader.fields:
        if each["name"] in reader.read and breaks_type(each["type"], reader.read[each["name"]]):
            name, wrong = each["name"], True
            break
    if not wrong and not reader.fields:
        wrong = breaks_type(part.schemas[at], value)
    whose = f"{part.name} schema {number}" if framing.has_ids else part.name
    if wrong:
        where = f"{whose}: {name}" + r"\b" * bool(name)
        return Reported("undecodable", where, at=at)
    if reader.place < len(payload):
        return Reported("left_over_bytes", f"{part.name} of {len(data)} bytes: ", at=at)
    columns = columns_of(part, part.schemas[at], value, schema)
    return Reported(None, columns=columns, at=at, payload=payload, value=value)


def columns_of(part: Part, kind: Any, value: Any, schema: TopicSchema) -> dict[str, Any]:
    """The columns of a value, or the one of a key; ``kind`` is None where there is none."""
    inside = {name: (its, held) for name, its, held in parts_of(part, kind, value)}
    found: dict[str, Any] = dict.fromkeys(schema.columns.names)
    for each in schema.columns:
        if each.name in inside:
            its, held = inside[each.name]
            is_text = each.name in part.texts
            found[each.name] = json_text(its, held) if is_text else column(its, held, each.dataType)
    if part.name == "value":
        return found
    if part.is_record:
        return {"_key": found if inside else None}
    return {"_key": found["value"]}


def parts_of(part: Part, kind: Any, value: Any) -> list[tuple[str, Any, Any]]:
    """What becomes columns, each with its name and type: a record's fields, or the value."""
    if kind is None:
        return []
    if not part.is_record:
        return [("value", kind, value)]
    if isinstance(value, Branch):
        kind, value = kind[value.at], value.value
    if value is None:
        return []
    return [(f["name"], f["type"], value[f["name"]]) for f in kind["fields"]]


def tried(part: Part, reported: Reported) -> Iterator[str]:
    """What a good value or key is an example of."""
    if reported.at is None:
        yield "tombstone" if part.name == "value" else "no key"
        return
    yield f"{part.name} in {part.framing.name} {part.framing.ids}"
    yield f"{part.name} that is {'a record' if part.is_record else 'none'}"
    inside = parts_of(part, part.schemas[reported.at], reported.value)
    if not inside:
        yield "a nullable record that is null"
    # What contains itself has its own name in it anyway.
    if part.reuses[reported.at] and not part.texts:
        yield f"{part.name} with a name again"
    for name, kind, value in inside:
        is_text = name in part.texts
        if is_text:
            yield f"{part.name} as text"
        yield from met(kind, value, ", as text" if is_text else "")


def met(schema: Any, value: Any, how: str) -> Iterator[str]:
    """The types in a value's unions of several."""
    if isinstance(value, Branch):
        branch = schema[value.at]
        if branch != "null" and sum(each != "null" for each in schema) > 1:
            kind = branch if isinstance(branch, str) else branch["type"]
            yield f"{kind} in a union{how}"
            before = [b for b in schema[: value.at] if isinstance(b, dict)]
            if kind == "record" and any(b["type"] == kind for b in before):
                yield f"second record in a union{how}"
        yield from met(branch, value.value, how)
    elif isinstance(value, list):
        for item in value:
            yield from met(schema["items"], item, how)
    elif isinstance(value, dict) and "fields" in schema:
        for each in schema["fields"]:
            yield from met(each["type"], value[each["name"]], how)
    elif isinstance(value, dict):
        for item in value.values():
            yield from met(schema["values"], item, how)


def bare(schema: Any) -> Any:
    """A schema without logical types."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inside = ("type", "items", "values", "fields")
    return {
        key: bare(part) if key in inside else part
        for key, part in schema.items()
        if key != "logicalType"
    }


def untagged(value: Any) -> Any:
    """A value without the places of unions' branches."""
    if isinstance(value, Branch):
        return untagged(value.value)
    if isinstance(value, dict):
        return {key: untagged(item) for key, item in value.items()}
    return [untagged(item) for item in value] if isinstance(value, list) else value
