"""The hand-made Avro bytes are those of fastavro."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from sandbox.streams import avro_bytes

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def by_fastavro(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.parametrize(
    "value",
    [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31), 1_700_000_000_000, -(2**63)],
)
def test_integers_are_avro_longs(value: int) -> None:
    assert avro_bytes.integer(value) == by_fastavro("long", value)


@pytest.mark.parametrize("value", ["", "Łódź", "x" * 64, "漢" * 100])
def test_strings_are_avro_strings(value: str) -> None:
    assert avro_bytes.string(value) == by_fastavro("string", value)


@pytest.mark.parametrize("value", [None, "", "Kraków"])
def test_optional_strings_are_avro_unions(value: str | None) -> None:
    assert avro_bytes.optional_string(value) == by_fastavro(["null", "string"], value)


@pytest.mark.parametrize("cents", [0, 1, 127, 128, 255, 256, 299, -1, -128, -129, 99_999_999])
def test_decimals_are_avro_decimals(cents: int) -> None:
    assert avro_bytes.decimal(cents) == by_fastavro(DECIMAL, Decimal(cents).scaleb(-2))


@pytest.mark.parametrize("value", [True, False])
def test_booleans_are_avro_booleans(value: bool) -> None:
    assert avro_bytes.boolean(value) == by_fastavro("boolean", value)


def test_the_frame_is_a_zero_byte_and_the_id_big_endian() -> None:
    assert avro_bytes.frame(0x01020304) == b"\x00\x01\x02\x03\x04"
