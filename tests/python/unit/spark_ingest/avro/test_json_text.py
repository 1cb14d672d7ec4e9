"""Avro to JSON text: each type as the documents say, and no byte too many or too few."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from spark_ingest.avro import json_text

FIXED = {"type": "fixed", "name": "F", "size": 2}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 3}
SMALL = {**FIXED, "name": "S", "logicalType": "decimal", "precision": 4, "scale": 4}
WHEN = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}


def wrapped(kind: Any) -> dict[str, Any]:
    fields = [{"name": "a", "type": kind}, {"name": "b", "type": "int"}]
    return {"type": "record", "name": "W", "namespace": "n", "fields": fields}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def text(kind: Any, value: Any) -> str | None:
    schema = wrapped(kind)
    found = json_text.reader(schema, ["a"])(written(schema, {"a": value, "b": 7}))
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("null", None, None),
        (["null", "int"], None, None),
        (["null", "int"], -3, "-3"),
        ("boolean", True, "true"),
        ("long", -(2**63), "-9223372036854775808"),
        ("double", 0.1, "0.1"),
        ("double", float("nan"), '"NaN"'),
        ("float", float("-inf"), '"-Infinity"'),
        ("string", 'ż"\n', '"ż\\"\\n"'),
        ("string", "null", '"null"'),
        ("bytes", b"\xff\x00", '"/wA="'),
        (FIXED, b"ab", '"YWI="'),
        (MONEY, Decimal("-123456789012345678901234567.891"), "-123456789012345678901234567.891"),
        (SMALL, Decimal("0.0001"), "0.0001"),
        ({"type": "int", "logicalType": "date"}, date(1969, 12, 31), '"1969-12-31"'),
        (WHEN, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), '"1969-12-31T23:59:59.999999Z"'),
        (WHEN, 2**62, str(2**62)),
        (LOCAL, 86_400_000, '"1970-01-02T00:00:00"'),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", '"B"'),
        ({"type": "array", "items": "int"}, [1, 2], "[1,2]"),
        ({"type": "array", "items": "int"}, [], "[]"),
        ({"type": "map", "values": ["null", "int"]}, {"k": None, "l": 1}, '{"k":null,"l":1}'),
        (["null", "int", "string"], "x", '{"string":"x"}'),
        (["null", "int", "string"], None, None),
    ],
)  # fmt: skip
def test_each_type_has_its_text(kind: Any, value: Any, said: str | None) -> None:
    assert text(kind, value) == said


@pytest.mark.parametrize(
    "parameters",
    [
        {"precision": 2, "scale": 3},
        {"precision": 0},
        {"precision": "2"},
        {"precision": 5, "type": "fixed", "name": "F", "size": 1},
    ],
)
def test_a_decimal_of_parameters_that_make_no_sense_is_bytes(parameters: dict[str, Any]) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", **parameters}
    payload = b"\x05\x0e" if "size" in parameters else b"\x02\x05\x0e"
    assert json_text.reader(wrapped(kind), ["a"])(payload) == ('"BQ=="',)


BRANCH = {
    "type": "record",
    "name": "Branch",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "named", "type": {"type": "map", "values": "Branch"}},
        {"name": "other", "type": ["null", "n.Branch", "string"]},
    ],
}


def test_what_contains_itself_is_followed_to_its_end() -> None:
    leaf = {"id": 2, "named": {}, "other": "end"}
    value = {"id": 1, "named": {"x": leaf, "y": leaf}, "other": ("n.Branch", leaf)}
    end = {"id": 2, "named": {}, "other": {"string": "end"}}
    assert json.loads(text(BRANCH, value) or "") == {
        "id": 1, "named": {"x": end, "y": end}, "other": {"branch": end}
    }  # fmt: skip


def test_a_record_that_may_be_null_has_its_columns() -> None:
    read = json_text.reader(["null", wrapped("string")], ["a", "b"])
    assert read(b"\x02\x02x\x0e") == ('"x"', "7")
    assert read(b"\x00") == (None, None)
    assert json_text.reader("null", ["a"])(b"") == (None,)
    for bad in (b"\x04\x02x\x0e", b"\x01\x02x\x0e", b"\x00\x00", b""):
        assert read(bad) is None


LINK = {"type": "record", "name": "Link", "fields": [{"name": "next", "type": ["null", "Link"]}]}


@pytest.mark.parametrize(
    ("links", "is_good"), [(400, True), (500, True), (501, False), (10**5, False)]
)
def test_no_chain_of_links_is_too_long_to_be_refused(links: int, is_good: bool) -> None:
    read = json_text.reader(wrapped(LINK), ["a"])
    found = read(b"\x02" * links + b"\x00" + b"\x0e")
    assert (found is not None) == is_good


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("string", b"\x02"),
        ("string", b"\x02\xff\x0e"),
        ("string", b"\x01\x0e"),
        ("boolean", b"\x02\x0e"),
        ("long", b"\xff" * 11),
        (["null", "int"], b"\x04\x0e"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02\x0e"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\x0f\x00\x0e"),
        (FIXED, b"a"),
        ("double", b"1234567"),
        ("int", b"\x02\x0e\x00"),
        ("int", b"\x02"),
        ("int", b""),
    ],
)
def test_bytes_that_are_not_the_schemas_are_refused(kind: Any, payload: bytes) -> None:
    assert json_text.reader(wrapped(kind), ["a"])(payload) is None
