"""Every Avro type from a real broker and registry into bronze, and back out of the table.

Fails when a value of any Avro type comes back from the table changed.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from pyspark.sql import Row

from spark_ingest.avro.framing import header
from spark_ingest.streaming import run, tables
from tests.python.stack.conftest import Feed
from tests.python.world.avro import framed
from tests.python.world.avro import record as described


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return described(*fields.items(), name=name, namespace="test")


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": meaning, **more}


def fixed(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


def mapping(item: Any) -> dict[str, Any]:
    return {"type": "map", "values": item}


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


DEEP = record("L1", l2=record("L2", l3=array(mapping(record("L3", l4=optional("int"))))))
EVERYTHING = record(
    "Everything",
    a_boolean="boolean",
    an_int="int",
    a_long="long",
    a_float="float",
    a_double="double",
    some_bytes="bytes",
    a_string="string",
    maybe=optional("string"),
    maybe_first=["string", "null"],
    choice=["null", "int", "string", record("Point", x="int", y="int"), array("long")],
    nested=record("Nested", one="int", two=optional("string")),
    again=optional("test.Nested"),
    deep=DEEP,
    many=array("int"),
    many_maybe=array(optional("string")),
    records=array("test.Nested"),
    named=mapping("double"),
    kind={"type": "enum", "name": "Kind", "symbols": ["RED", "GREEN"]},
    code=fixed("Code", 3),
    money=logical("bytes", "decimal", precision=20, scale=4),
    small_money=fixed("Small", 4, logicalType="decimal", precision=9, scale=2),
    no_money=logical("bytes", "decimal"),
    day=logical("int", "date"),
    clock_ms=logical("int", "time-millis"),
    clock_us=logical("long", "time-micros"),
    at_ms=logical("long", "timestamp-millis"),
    at_us=logical("long", "timestamp-micros"),
    at_ns=logical("long", "timestamp-nanos"),
    local_ms=logical("long", "local-timestamp-millis"),
    local_us=logical("long", "local-timestamp-micros"),
    id=logical("string", "uuid"),
    span=fixed("Span", 12, logicalType="duration"),
    nothing="null",
    empty=record("Empty"),
    maybe_empty=optional("test.Empty"),
)
FULL: dict[str, Any] = {
    "a_boolean": True, "an_int": -(2**31), "a_long": 2**63 - 1, "a_float": 0.25,
    "a_double": 1e308, "some_bytes": b"\x00\xff", "a_string": "żółw 🐢 \x00", "maybe": "x",
    "maybe_first": None, "choice": ("test.Point", {"x": 1, "y": -1}),
    "nested": {"one": 1, "two": None}, "again": {"one": 2, "two": "z"},
    "deep": {"l2": {"l3": [{"k": {"l4": 7}, "m": {"l4": None}}, {}]}},
    "many": [1, 2, 3], "many_maybe": ["a", None], "records": [{"one": 3, "two": "c"}],
    "named": {"pi": 3.5, "e": 2.5}, "kind": "GREEN", "code": b"\x01\x02\x03",
    "money": Decimal("-1234567890123456.7891"), "small_money": Decimal("-9999999.99"),
    "no_money": b"\x05", "day": date(1969, 12, 31), "clock_ms": time(23, 59, 59, 999000),
    "clock_us": time(0, 0, 0, 1), "at_ms": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
    "at_us": datetime(1900, 1, 1, 0, 0, 0, 1, UTC), "at_ns": 1_700_000_000_123_456_789,
    "local_ms": datetime.fromisoformat("2026-03-29T02:30:00.001"),
    "local_us": datetime.fromisoformat("0001-01-01T00:00:00"),
    "id": UUID("12345678-1234-5678-1234-567812345678"), "span": bytes(range(12)),
    "nothing": None, "empty": {}, "maybe_empty": {},
}  # fmt: skip
SEEN: dict[str, Any] = {
    **FULL,
    "choice": Row(long=None, string=None, point=Row(x=1, y=-1), array=None),
    "nested": Row(one=1, two=None),
    "again": Row(one=2, two="z"),
    "deep": Row(l2=Row(l3=[{"k": Row(l4=7), "m": Row(l4=None)}, {}])),
    "records": [Row(one=3, two="c")],
    "clock_ms": 86_399_999,
    "clock_us": 1,
    "at_ms": "2026-01-02 03:04:05.678",
    "at_us": "1900-01-01 00:00:00.000001",
    "local_ms": "2026-03-29 02:30:00.001",
    "local_us": "0001-01-01 00:00:00",
    "id": "12345678-1234-5678-1234-567812345678",
    "empty": Row(_empty=None),
    "maybe_empty": Row(_empty=None),
}
TYPES = {
    "an_int": "int", "choice": "struct<long:bigint,string:string,point:struct<x:int,y:int>,"
    "array:array<bigint>>", "code": "binary", "money": "decimal(20,4)",
    "small_money": "decimal(9,2)", "no_money": "binary", "day": "date", "clock_ms": "int",
    "clock_us": "bigint", "at_ms": "timestamp", "at_ns": "bigint", "local_us": "timestamp_ntz",
    "id": "string", "span": "binary", "kind": "string", "empty": "struct<_empty:boolean>",
}  # fmt: skip

NODE = record("Node", value=optional("int"), next=optional("test.Node"))
TREE = record(
    "Tree",
    name="string",
    root=record(
        "Branch",
        weight=logical("bytes", "decimal", precision=6, scale=2),
        seen=logical("long", "timestamp-millis"),
        raw="bytes",
        what=["null", "int", "string"],
        leaves=array("test.Branch"),
        names=mapping("int"),
    ),
    list=NODE,
    size="int",
)


def ingest_all(feeds: list[Feed]) -> None:
    """Take what all their topics hold, in one run."""
    services, streams = feeds[0].services, [feed.stream for feed in feeds]
    tables.create_tables(services, streams)
    settings = run.RunSettings(None, 1_000_000, unknown_wait=0.5)
    run.run_streams(services, streams, settings, threading.Event())


def table(feed: Feed) -> list[dict[str, Any]]:
    """The value's columns of each row, by offset; times as text, bytes as bytes."""
    rows = feed.services.spark.table(feed.table).orderBy("_kafka_partition", "_kafka_offset")
    kinds = dict(rows.dtypes)
    shown = [
        rows[name].cast("string").alias(name) if kinds[name].startswith("timestamp") else name
        for name in rows.columns
        if not name.startswith("_")
    ]
    return [
        {
            name: bytes(value) if isinstance(value, bytearray) else value
            for name, value in row.asDict().items()
        }
        for row in rows.select(*shown).collect()
    ]


def test_every_type_comes_back_as_it_was_sent(new_feed: Callable[[], Feed]) -> None:
    everything, lists, trees = new_feed(), new_feed(), new_feed()
    people, either, texts, maybe = new_feed(), new_feed(), new_feed(), new_feed()

    least = {
        **FULL, "maybe": None, "choice": None, "again": None, "many": [], "many_maybe": [],
        "records": [], "named": {}, "maybe_empty": None, "a_float": float("inf"),
    }  # fmt: skip
    choices: list[Any] = [5, "text", [1, 2**40]]
    values = [FULL, least, *({**FULL, "choice": choice} for choice in choices)]
    number = everything.register(EVERYTHING)
    everything.send(*(framed(number, EVERYTHING, value) for value in values))

    number = lists.register(NODE)
    long_list: dict[str, Any] | None = None
    for value in range(100):
        long_list = {"value": value, "next": long_list}
    good = framed(number, NODE, {"value": None, "next": long_list})
    # More links than any stack has room for.
    endless = header(number) + b"\x02\x02\x02" * 200_000 + b"\x00\x00"
    lists.send(good, good + b"!", good[:-1], endless, None)

    number = trees.register(TREE)
    leaf = {
        "weight": Decimal("-0.05"), "seen": datetime(2026, 1, 1, tzinfo=UTC), "raw": b"\xff",
        "what": "w", "leaves": [], "names": {"a": 1, "b": 2},
    }  # fmt: skip
    root = {**leaf, "what": 3, "leaves": [leaf, leaf]}
    tree = {"name": "oak", "root": root, "list": {"value": 1, "next": None}, "size": 2}
    trees.send(framed(number, TREE, tree))

    person, address = register_with_reference(people)
    people.send(
        header(person)
        + avro(
            [address, record("Person", name="string", home="test.Address")],
            {"name": "Ada", "home": {"street": "Main", "no": 1}},
        )
    )

    union = [record("Left", x="int"), record("Right", y="string")]
    number = either.register(union)
    either.send(
        framed(number, union, ("test.Left", {"x": 1})),
        framed(number, union, ("test.Right", {"y": "r"})),
    )
    number = texts.register("string")
    texts.send(framed(number, "string", "hello"), None)
    nullable = ["null", record("Maybe", x="int")]
    number = maybe.register(nullable)
    maybe.send(framed(number, nullable, {"x": 4}), framed(number, nullable, None), None)

    ingest_all([everything, lists, trees, people, either, texts, maybe])

    seen = {key: value for key, value in SEEN.items() if key != "nothing"}
    bare = {
        **seen, "maybe": None, "choice": None, "again": None, "many": [], "many_maybe": [],
        "records": [], "named": {}, "maybe_empty": None, "a_float": float("inf"),
    }  # fmt: skip
    none = dict.fromkeys(("long", "string", "point", "array"))
    members = (
        Row(**{**none, "long": 5}),
        Row(**{**none, "string": "text"}),
        Row(**{**none, "array": [1, 2**40]}),
    )
    rows = table(everything)
    for row, wanted in zip(
        rows, [seen, bare, *({**seen, "choice": one} for one in members)], strict=True
    ):
        for name, value in wanted.items():
            assert row[name] == value, name
        assert row.keys() == wanted.keys()
    kinds = dict(everything.services.spark.table(everything.table).dtypes)
    assert {name: kinds[name] for name in TYPES} == TYPES

    first, _ = table(lists)
    assert first["value"] is None
    link = json.loads(first["next"])
    for value in range(99, -1, -1):
        assert link["value"] == value
        link = link["next"]
    assert link is None
    assert lists.quarantined() == [(1, "left_over_bytes"), (2, "undecodable"), (3, "undecodable")]

    (row,) = table(trees)
    shown = {
        "weight": -0.05, "seen": "2026-01-01T00:00:00Z", "raw": "/w==",
        "what": {"string": "w"}, "leaves": [], "names": {"a": 1, "b": 2},
    }  # fmt: skip
    assert (row["name"], row["size"]) == ("oak", 2)
    assert json.loads(row["root"]) == {
        **shown, "what": {"int": 3}, "leaves": [shown, shown]
    }  # fmt: skip
    assert json.loads(row["list"]) == {"value": 1, "next": None}

    assert table(people) == [{"name": "Ada", "home": Row(street="Main", no=1)}]
    assert table(either) == [
        {"value": Row(left=Row(x=1), right=None)},
        {"value": Row(left=None, right=Row(y="r"))},
    ]
    assert table(texts) == [{"value": "hello"}, {"value": None}]
    assert table(maybe) == [{"x": 4}, {"x": None}, {"x": None}]
    tombstones = maybe.services.spark.table(maybe.table).orderBy("_kafka_offset")
    assert [row[0] for row in tombstones.select("_is_tombstone").collect()] == [
        False, False, True
    ]  # fmt: skip
    for feed in (everything, trees, people, either, texts, maybe):
        assert feed.quarantined() == []


def avro(schemas: list[Any], value: Any) -> bytes:
    """A value of the last of some schemas, which may use the others."""
    known: dict[str, Any] = {}
    for schema in schemas:
        parsed = fastavro.parse_schema(schema, named_schemas=known)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


def register_with_reference(feed: Feed) -> tuple[int, dict[str, Any]]:
    """A person's schema that refers to an address of a subject of its own."""
    client = SchemaRegistryClient({"url": feed.stack.home.registry_url})
    address = record("Address", street="string", no="int")
    subject = f"{feed.topic}-address"
    client.register_schema(subject, Schema(json.dumps(address), "AVRO"))
    person = record("Person", name="string", home="test.Address")
    reference = SchemaReference("test.Address", subject, 1)
    registered = Schema(json.dumps(person), "AVRO", [reference])
    return client.register_schema(f"{feed.topic}-value", registered), address
