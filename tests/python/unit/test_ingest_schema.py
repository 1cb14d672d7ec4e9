"""Versions of a topic's schema put together."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from spark_ingest.registry import WriterSchema
from spark_ingest.schema import TopicSchema, combine


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "n",
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def combined(*schemas: Any) -> TopicSchema:
    return combine([WriterSchema(i, schema) for i, schema in enumerate(schemas, 1)])


def read(schema: TopicSchema, writer_id: int, value: dict[str, Any]) -> Any:
    """What the reader schema makes of a value that one of the writers wrote."""
    out = io.BytesIO()
    writer = fastavro.parse_schema(schema.writers[writer_id])
    fastavro.schemaless_writer(out, writer, value)
    out.seek(0)
    assert schema.reader is not None
    reader = fastavro.parse_schema(schema.reader)
    return fastavro.schemaless_reader(out, writer, reader)


def test_every_field_of_every_version_is_there_and_absent_is_null() -> None:
    with_default = {"name": "b", "type": "string", "default": "invented"}
    old, new = record(("a", "int")), record(("a", "int"))
    new["fields"].append(with_default)
    schema = combined(old, new)
    assert read(schema, 1, {"a": 1}) == {"a": 1, "b": None}
    assert read(schema, 2, {"a": 1, "b": "x"}) == {"a": 1, "b": "x"}


def test_a_renamed_field_is_a_new_column_whatever_its_aliases() -> None:
    renamed = record(("customer", "int"))
    renamed["fields"][0]["aliases"] = ["client"]
    schema = combined(record(("client", "int")), renamed)
    assert read(schema, 1, {"client": 7}) == {"client": 7, "customer": None}
    assert read(schema, 2, {"customer": 7}) == {"client": None, "customer": 7}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("int", "long", 5),
        ("long", "int", 5),
        ("float", "double", 0.5),
        ("int", ["null", "int"], 5),
    ],
)
def test_types_that_grow_take_both(old: Any, new: Any, value: Any) -> None:
    schema = combined(record(("a", old)), record(("a", new)))
    assert not schema.misfits
    assert [read(schema, i, {"a": value}) for i in (1, 2)] == [{"a": value}] * 2


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


def test_a_decimal_grows_in_precision_only() -> None:
    schema = combined(record(("a", decimal(10, 2))), record(("a", decimal(12, 2))))
    assert schema.reader is not None
    assert schema.reader["fields"][0]["type"][1]["precision"] == 12
    schema = combined(record(("a", decimal(10, 2))), record(("a", decimal(10, 3))))
    assert schema.misfits == {
        2: "a: decimal(10,3) on bytes where earlier versions have decimal(10,2) on bytes"
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int", "string"),
        ("long", {"type": "long", "logicalType": "timestamp-millis"}),
        ("int", "double"),
        ({"type": "int", "logicalType": "date"}, "long"),
        (record(("x", "int"), name="S"), "int"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
    ],
)
def test_a_version_that_does_not_fit_is_named_and_the_others_stay(
    old: Any, new: Any
) -> None:
    schema = combined(
        record(("a", old)), record(("a", new)), record(("a", old), ("b", "int"))
    )
    assert list(schema.misfits) == [2]
    assert schema.misfits[2].startswith("a")
    assert list(schema.writers) == [1, 3]


def test_a_decimal_that_says_no_precision_is_bytes_as_avro_demands() -> None:
    schema = combined(record(("a", {"type": "bytes", "logicalType": "decimal"})))
    assert schema.reader is not None
    assert schema.reader["fields"][0]["type"] == ["null", "bytes"]


def test_a_decimal_too_long_for_the_lake_is_a_misfit() -> None:
    schema = combined(record(("a", decimal(39, 2))))
    assert schema.misfits == {1: "a: decimal(39,2), of more than 38 digits"}


def test_fields_that_differ_in_case_alone_are_a_misfit() -> None:
    schema = combined(
        record(("city", "string")), record(("city", "string"), ("City", "string"))
    )
    assert schema.misfits == {2: "value: fields city and City differ in case alone"}
    schema = combined(record(("city", "string")), record(("City", "string")))
    assert list(schema.misfits) == [2]


def test_enums_take_the_symbols_of_all_versions() -> None:
    def enum(*symbols: str) -> dict[str, Any]:
        return {"type": "enum", "name": "E", "symbols": list(symbols)}

    schema = combined(record(("e", enum("A"))), record(("e", enum("B", "A"))))
    assert read(schema, 1, {"e": "A"}) == {"e": "A"}
    assert read(schema, 2, {"e": "B"}) == {"e": "B"}


@pytest.mark.parametrize(
    "kind",
    [
        ["null", "int", "string"],
        ["null", record(("next", ["null", "n.S"]), name="S")],
    ],
)
def test_what_bronze_cannot_hold_yet_is_a_misfit_and_not_an_error(kind: Any) -> None:
    schema = combined(record(("a", kind)))
    assert schema.reader is None
    assert "a" in schema.misfits[1]


def test_a_schema_that_leans_on_others_is_a_misfit() -> None:
    assert list(combined(None).misfits) == [1]


def test_values_that_are_no_records_are_read_too() -> None:
    assert combined("int", "long").reader == "long"
