"""The sandbox's streams and generators: found in their folders, alike in what they promise."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from sandbox import streams
from sandbox.streams import STREAMS, Stream, avro_bytes, generator
from sandbox.streams.generator import Generator, generators, of_rows
from sandbox.streams.timeline import LATE, ON_TIME, WRONG, Plan, Record
from spark_ingest.errors import ConfigurationError

SOURCES = """
sources:
  - name: shop
    tables:
      - name: orders
        config: {meta: {ingest: {topic: their.orders}}}
      - name: seeds
"""


def test_every_stream_has_a_topic_of_its_own_and_a_key_that_its_values_hold() -> None:
    assert len({stream.topic for stream in STREAMS.values()}) == len(STREAMS) > 0
    for stream in STREAMS.values():
        fields = {field["name"] for field in stream.value_schema["fields"]}
        assert stream.key_field in fields


def test_a_topic_is_what_the_source_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "models/staging/shop/_shop__sources.yml"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCES)
    monkeypatch.setattr(streams, "PROJECT", tmp_path)
    uncached = streams.declared_topics.__wrapped__
    monkeypatch.setattr(streams, "declared_topics", uncached)
    orders, seeds = (Stream(name, {}, {}, "order_id") for name in ("shop.orders", "shop.seeds"))

    assert orders.topic == "their.orders"
    assert orders.key_subject == "their.orders-key"
    with pytest.raises(
        ConfigurationError, match=r"table seeds of source shop.*_shop__sources\.yml"
    ):
        assert seeds.topic


IDS = {name: (2 * place + 1, 2 * place + 2) for place, name in enumerate(STREAMS)}
COMMANDS = sorted(generators())


def made(command: str, count: int = 500, seed: int = 7, late: float = 0.1) -> list[Record]:
    found = generators()[command]
    wrong = 0.1 if found.makes_wrong else 0.0
    plan = Plan(seed, count, 1_767_603_600_000, 40.0, late, 0.1, 3, wrong)
    return list(found.make(plan, IDS))


def decoded(framed: bytes, schema_id: int, schema: dict[str, Any]) -> object:
    """What a reader makes of it, which must take every byte."""
    assert framed[:5] == avro_bytes.frame(schema_id)
    payload = BytesIO(framed[5:])
    value = schemaless_reader(payload, parse_schema(schema), None)
    assert payload.read() == b""
    return value


@pytest.mark.parametrize("command", COMMANDS)
def test_a_generator_makes_the_same_bytes_for_the_same_seed_and_others_for_another(
    command: str,
) -> None:
    assert made(command) == made(command)
    assert [one.value for one in made(command)] != [one.value for one in made(command, seed=8)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_generator_makes_exactly_as_many_of_each_kind_as_asked(command: str) -> None:
    kinds = Counter(one.kind for one in made(command) if not one.beside)
    wrong = 50 if generators()[command].makes_wrong else 0
    assert kinds.total() == 500
    assert (kinds[LATE], kinds[WRONG], kinds[ON_TIME]) == (50, wrong, 400 - wrong)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_generator_makes_is_read_by_the_schemas_of_its_streams(command: str) -> None:
    found = generators()[command]
    by_topic = {one.topic: one for one in (found.events, *found.beside)}
    read: Counter[str] = Counter()
    for record in made(command):
        if record.kind not in (ON_TIME, LATE, WRONG):
            continue
        stream = by_topic[record.beside or found.events.topic]
        key_id, value_id = IDS[stream.name]
        value = decoded(record.value, value_id, stream.value_schema)
        assert isinstance(value, dict)
        assert record.key is not None
        key = decoded(record.key, key_id, stream.key_schema)
        assert key == value[stream.key_field]
        read[stream.name] += 1
    assert set(read) == {stream.name for stream in by_topic.values()}


def test_rows_are_encoded_by_the_schemas_of_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [{"name": "id", "type": "int"}, {"name": "at", "type": "long"}]
    schema = {"type": "record", "name": "Order", "fields": fields}
    monkeypatch.setitem(
        STREAMS, "shop.orders", Stream("shop.orders", schema, {"type": "int"}, "id")
    )
    make = of_rows("shop.orders", lambda _, number, at: {"id": number, "at": at})

    (first, second) = make(Plan(1, 2, 5_000, 0.0), {"shop.orders": (8, 9)})

    assert (first.key, second.key) == (
        avro_bytes.frame(8) + avro_bytes.integer(1),
        avro_bytes.frame(8) + avro_bytes.integer(2),
    )
    assert first.value == (avro_bytes.frame(9) + avro_bytes.integer(1) + avro_bytes.integer(5_000))


def test_a_generator_is_a_command_of_its_streams_name_unless_it_has_another() -> None:
    plain = Generator("shop.orders", of_rows("shop.orders", lambda *_: {}), "Orders.")
    assert (plain.command, plain.noun) == ("shop.orders", "orders")
    assert generators()["pagila"].name == "pagila.sales"


def test_two_generators_with_one_command_are_refused_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sales", "twin"):
        file = tmp_path / "pagila" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    monkeypatch.setattr(generator, "__file__", str(tmp_path / "generator.py"))
    found = generators()["pagila"]
    twin = type("Module", (), {"GENERATOR": found})
    monkeypatch.setattr(generator, "import_module", lambda _: twin)

    with pytest.raises(ConfigurationError, match=r"twin\.py: `sandbox produce pagila`"):
        generators.__wrapped__()
