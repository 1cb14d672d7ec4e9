"""JSON that its columns cannot hold: quarantined with the field's name, and never changed.

Fails when a JSON value is changed on its way to the table instead of being quarantined.
"""

from __future__ import annotations

import json
import random
from decimal import Decimal

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from spark_ingest.avro.evolution import declared
from spark_ingest.avro.framing import JSON
from spark_ingest.records.validation import Validated
from tests.python.spark.test_ingest_decode import error_classes as classes
from tests.python.spark.test_ingest_decode import kafka, validate

COLUMNS = (
    "i int, l bigint, f float, d double, b boolean, m decimal(6,2), s string, x binary, "
    "t timestamp, u timestamp_ntz, day date, n struct<m: decimal(6,2)>, a array<float>, "
    "k map<string, int>, number__ int, broken__ int, value int, _json string"
)
HALF = "half a surrogate pair"
BAD = [
    (rb'{"i": 2147483648}', "i: 2147483648 is wider than an int"),
    (rb'{"i": 1.0}', "i: not a whole number"),
    (rb'{"i": "5"}', "i: not a whole number"),
    (rb'{"l": -9223372036854775809}', "l: -9223372036854775809 is wider than a bigint"),
    (rb'{"f": 1e300}', "f: 1e300 is no number of a float"),
    (rb'{"f": 16777217}', "f: 16777217 is no number of a float"),
    (rb'{"f": 0.1234567891}', "f: 0.1234567891 is no number of a float"),
    (rb'{"f": "1"}', "f: not a number"),
    (rb'{"d": 1e999}', "d: 1e999 is no number of a double"),
    (rb'{"d": 1e-999}', "d: 1e-999 is no number of a double"),
    (rb'{"d": 9007199254740993}', "d: 9007199254740993 is no number of a double"),
    (rb'{"b": "true"}', "b: not a boolean"),
    (rb'{"b": 1}', "b: not a boolean"),
    (rb'{"m": 1.239}', "m: 1.239 has more than 2 digits behind the point"),
    (rb'{"m": "1.239"}', "m: 1.239 has more than 2 digits behind the point"),
    (rb'{"m": "1,5"}', "m: 1,5 is not a number"),
    (rb'{"m": 10000.00}', "m: 10000.00 has more than 4 digits before the point"),
    (rb'{"m": 1e99999}', "m: 1e99999 has more than 4 digits before the point"),
    (rb'{"m": NaN}', "m: NaN is not a number"),
    (rb'{"s": "\ud800"}', f"s: {HALF}"),
    (rb'{"s": {"a": ["\udc00\ud800"]}}', f"s: {HALF}"),
    (rb'{"s": 1234567890.123456789}', "s: 1234567890.123456789 is no number of a double"),
    (rb'{"s": [{"a": 1e999}]}', "s: 1e999 is no number of a double"),
    (rb'{"x": "QUJ="}', "x: not base64"),
    (rb'{"t": "2026-01-01T00:00:00.1234567Z"}', "t: 2026-01-01T00:00:00.1234567Z is finer"),
    (rb'{"t": "12:34:56"}', "t: 12:34:56 is not a time like 2026-01-31T12:00:00Z"),
    (rb'{"t": "2026-01-01 10:00Z"}', "t: 2026-01-01 10:00Z is not a time like"),
    (rb'{"t": "2026-02-30T00:00:00Z"}', "t: 2026-02-30T00:00:00Z is no such time"),
    (rb'{"t": 1700000000}', "t: not a time as text"),
    (rb'{"u": "2026-01-01T00:00:00Z"}', "u: 2026-01-01T00:00:00Z has a zone, and its column"),
    (rb'{"day": "2026-01-01T05:00:00Z"}', "day: 2026-01-01T05:00:00Z is not a date like"),
    (rb'{"day": "2026"}', "day: 2026 is not a date like 2026-01-31"),
    (rb'{"day": 20000}', "day: not a date as text"),
    (rb'{"n": {"m": 0.001}}', "n.m: 0.001 has more than 2 digits behind the point"),
    (rb'{"n": 1}', "n: not an object"),
    (rb'{"a": [1.5, 1e39]}', "a[]: 1e39 is no number of a float"),
    (rb'{"k": {"x": 1, "y": 2147483648}}', "k{}: 2147483648 is wider than an int"),
    (rb'{"k": {"x": 1, "x": 2}}', "k{}: duplicate key"),
    (rb'{"k": {"\ud800": 1}}', f"k{{}}: {HALF}"),
    (rb'{"i": 1, "i": 2}', "i: duplicate field"),
    (b'{"s": "\xff"}', "not UTF-8"),
    (b'{"i": 1} {"i": 2}', "more than one value"),
    (b"[]", "not a JSON object"),
    (b'{"i": 1', "not JSON: "),
    (b"{'i': 1}", "not JSON: "),
]  # fmt: skip
GOOD = [
    (rb'{"i": -0, "l": -9223372036854775808}', {"i": "0", "l": "-9223372036854775808"}),
    (rb'{"f": 0.1, "d": 0.10000000000000001}', {"f": "0.1", "d": "0.1"}),
    (rb'{"f": "NaN", "d": -Infinity}', {"f": "NaN", "d": "-Infinity"}),
    (rb'{"d": 123456789012345680000}', {"d": "1.2345678901234568E20"}),
    (rb'{"d": 0.5000000000000000000000}', {"d": "0.5"}),
    (rb'{"m": 1.2300, "n": {"m": "-1.5"}}', {"m": "1.23", "n": "{-1.50}"}),
    (rb'{"m": 1e3, "b": false}', {"m": "1000.00", "b": "false"}),
    (rb'{"s": "\ud83d\udc22", "x": "QUI="}', {"s": "🐢", "x": "AB"}),
    (rb'{"s": {"a": [1.5, "x", null]}}', {"s": '{"a":[1.5,"x",null]}'}),
    (rb'{"s": 12345678901234567890}', {"s": "12345678901234567890"}),
    (rb'{"t": "2026-01-01T01:00:00.1234560+01:00"}', {"t": "2026-01-01 00:00:00.123456"}),
    (rb'{"t": "2026-01-01 01:00:00-0130"}', {"t": "2026-01-01 02:30:00"}),
    (rb'{"t": "2026-01-01", "u": "2026-01-01T10:00"}',
     {"t": "2026-01-01 00:00:00", "u": "2026-01-01 10:00:00"}),
    (rb'{"day": "2026-12-31", "a": [], "k": {}}', {"day": "2026-12-31", "a": "[]", "k": "{}"}),
    (rb'{"other": 1e999, "other": "\ud800", "i": null}', {}),
    (b'{"number__": 1, "broken__": 2, "value": 3}',
     {"number__": "1", "broken__": "2", "value": "3"}),
]  # fmt: skip


def validated(spark: SparkSession, *values: bytes) -> Validated:
    shape = StructType.fromDDL(COLUMNS)
    assert isinstance(shape, StructType)
    return validate(kafka(spark, *values), "id", declared(JSON, shape), None)


def landed(spark: SparkSession, *values: bytes) -> list[Row]:
    """Of each record the error, and its columns as text."""
    found = validated(spark, *values)
    columns = [column.cast("string").alias(name) for name, column in found.columns.items()]
    return found.records.orderBy("_kafka_offset").select("_error.*", *columns).collect()


def test_json_that_a_column_would_change_is_set_aside_with_its_fields_name(
    spark: SparkSession,
) -> None:
    reported = landed(spark, *(value for value, _ in BAD), *(value for value, _ in GOOD))
    for row, (value, reason) in zip(reported, BAD, strict=False):
        assert (row["stage"], row["error_class"]) == ("decode", "undecodable"), value
        assert row["error_message"].startswith(f"value: {reason}"), value
    reported_not = {"stage", "error_class", "error_message", "_json"}
    for row, (value, wanted) in zip(reported[len(BAD) :], GOOD, strict=True):
        assert row["error_message"] is None, value
        assert row["_json"] == value.decode()
        parts = row.asDict().items()
        held = {name: text for name, text in parts if name not in reported_not and text is not None}
        assert held == wanted, value


def test_a_number_of_json_lands_as_it_is_spelled_or_not_at_all(spark: SparkSession) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sent = [(chance.choice("ilfdm"), spelled(chance)) for _ in range(600)]
    values = [f'{{"{name}": {number}}}'.encode() for name, number in sent]
    taken = 0
    for (name, number), row in zip(sent, landed(spark, *values), strict=True):
        case = f"seed {seed}: {number} as {name}"
        if row["error_class"] is not None:
            assert row[name] is None, case
            continue
        taken += 1
        if name in "fd":
            digits = 9 if name == "f" else 17
            near = Decimal(row[name]) - Decimal(number)
            assert abs(near) <= abs(Decimal(number)) * Decimal(10) ** (2 - digits), case
        else:
            assert Decimal(row[name]) == Decimal(number), case
    assert 60 < taken < 540


def spelled(chance: random.Random) -> str:
    """A number of JSON's in one of its spellings."""
    whole = str(chance.randrange(10 ** chance.choice((1, 4, 10, 19, 25))))
    digits = chance.choice((1, 2, 3, 9, 20))
    fraction = "".join(chance.choice("0123456789") for _ in range(digits))
    sign, power = chance.choice(("", "+", "-")), chance.choice((0, 1, 2, 30, 400))
    exponent = f"{chance.choice('eE')}{sign}{power}"
    return (
        chance.choice(("", "-"))
        + whole
        + chance.choice(("", "", f".{fraction}", f".{fraction[0]}000"))
        + chance.choice(("", "", "", exponent))
    )


def test_a_key_of_json_that_a_column_would_change_sets_its_record_aside(
    spark: SparkSession,
) -> None:
    shape = StructType.fromDDL("price decimal(6,2)")
    assert isinstance(shape, StructType)
    columns = StructType().add("i", "integer").add("_json", "string")
    key = json.dumps({"price": 1.239}).encode()
    records = kafka(spark, b'{"i": 1}', key=key)
    found = validate(records, "id", declared(JSON, columns), declared(JSON, shape))
    assert classes(found.records) == ["key_undecodable"]
