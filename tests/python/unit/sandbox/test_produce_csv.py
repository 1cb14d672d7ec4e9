"""A CSV becomes records of a topic of its own, by schemas made of it or by those registered."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from sandbox.events import produce_csv, schema_ids
from sandbox.events.encode_row import RowEncoder
from sandbox.events.file_rows import read_table
from sandbox.events.replay import Replay
from sandbox.events.replay_rows import FileFormat
from sandbox.settings import Home
from sandbox.streams import Stream
from spark_ingest.drafts.csv_schema import read_shape
from spark_ingest.errors import ConfigurationError, ServiceUnavailable
from tests.python.conftest import make_home

CSV = """\
Order ID;Paid (EUR);is gift;day;at;zip
7;19.99;yes;2026-01-05;2026-01-05 10:00:00+01;00123
8;;;;;
"""
LONG = {"type": "long"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be sent: stream, records, and the topics that were created."""
    found: list[Any] = []

    def send(
        stream: Stream, text: Any, name: str, file_format: FileFormat, timestamps: str | None
    ) -> None:
        table = read_table(text, name, (), file_format.delimiter, file_format.null)
        rows = Replay(stream, table, timestamps, file_format.columns)
        found.append((stream, [*rows.records(RowEncoder(stream, 3, 4))]))

    monkeypatch.setattr(produce_csv, "send_rows", send)
    monkeypatch.setattr(produce_csv, "create_topic", lambda _, stream: None)
    return found


def registered(monkeypatch: pytest.MonkeyPatch, **subjects: dict[str, Any]) -> None:
    monkeypatch.setattr(
        produce_csv, "registered_schema", lambda _, subject: subjects.get(subject.partition("-")[2])
    )


def decoded(stream: Stream, value: bytes) -> Any:
    schema = parse_schema(stream.value_schema)
    return schemaless_reader(BytesIO(value[5:]), schema, None)


def produce(folder: Path, text: str, key: str = "Order ID", **more: Any) -> None:
    file = folder / "orders.csv"
    file.write_text(text)
    produce_csv.produce_csv(file, "shop.orders", key, **more)


def test_rows_are_sent_by_the_schema_that_they_ask_for(
    tmp_path: Path, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(monkeypatch)

    produce(tmp_path, CSV)

    ((stream, records),) = sent
    assert (stream.topic, stream.key_schema) == ("shop.orders", LONG)
    assert [record.key[5:] for record in records] == [bytes([14]), bytes([16])]
    assert [decoded(stream, record.value) for record in records] == [
        {
            "order_id": 7,
            "paid_eur": Decimal("19.99"),
            "is_gift": True,
            "day": date(2026, 1, 5),
            "at": datetime(2026, 1, 5, 9, tzinfo=UTC),
            "zip": "00123",
        },
        {"order_id": 8, "paid_eur": None, "is_gift": None, "day": None, "at": None, "zip": None},
    ]


def test_a_further_file_is_sent_by_the_registered_schema(
    tmp_path: Path, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [{"name": "order_id", "type": "long"}, {"name": "zip", "type": "string"}]
    value = {"type": "record", "name": "Order", "fields": fields}
    registered(monkeypatch, value=value, key=LONG)

    produce(tmp_path, "zip,order_id,other\n12345,1,x\n", "order_id")

    ((stream, (record,)),) = sent
    assert decoded(stream, record.value) == {"order_id": 1, "zip": "12345"}


def test_a_key_that_the_registered_schema_has_not_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [{"name": "number", "type": "long"}]
    registered(monkeypatch, value={"type": "record", "name": "O", "fields": fields})
    shape = read_shape(StringIO(CSV), "f", "shop.orders", "order_id")

    with pytest.raises(ConfigurationError, match=re.escape("no field order_id")):
        produce_csv.stream_of(home, "shop.orders", shape)


def test_a_separator_is_one_character(tmp_path: Path, sent: list[Any]) -> None:
    with pytest.raises(ConfigurationError, match="is not one character"):
        produce(tmp_path, CSV, delimiter="||")
    assert sent == []


def test_what_is_no_utf8_is_refused(tmp_path: Path, sent: list[Any]) -> None:
    file = tmp_path / "orders.csv"
    file.write_bytes("id,name\n1,Zoë\n".encode("latin1"))

    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        produce_csv.produce_csv(file, "shop.orders", "id")
    assert sent == []


@pytest.mark.parametrize(
    ("schema", "found"), [('"long"', {"type": "long"}), ('{"type": "long"}', {"type": "long"})]
)
def test_the_newest_schema_of_a_subject_is_read(
    home: Home, monkeypatch: pytest.MonkeyPatch, schema: str, found: dict[str, Any]
) -> None:
    monkeypatch.setattr(schema_ids, "_ask", lambda *_: {"schema": schema})

    assert schema_ids.registered_schema(home, "shop.orders-key") == found


def test_a_subject_that_is_not_there_has_no_schema(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise schema_ids._RefusedError(404, "no subject")

    monkeypatch.setattr(schema_ids, "_ask", refuse)

    assert schema_ids.registered_schema(home, "shop.orders-key") is None


def test_a_union_is_no_schema_of_rows(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_ids, "_ask", lambda *_: {"schema": '["null", "long"]'})

    with pytest.raises(ConfigurationError, match="is a union"):
        schema_ids.registered_schema(home, "shop.orders-value")


def test_a_registry_that_is_down_is_reported_with_the_command(home: Home) -> None:
    with pytest.raises(ServiceUnavailable, match="sandbox up"):
        schema_ids.registered_schema(home, "shop.orders-value")
