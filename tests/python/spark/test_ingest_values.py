"""Values that do not fit: quarantined with the field's name, and never changed.

Fails when a value is changed on its way to the table instead of being quarantined.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.framing import header
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.records.avro_check import schema_problem
from spark_ingest.records.validation import validator
from tests.python.spark.test_ingest_decode import error_classes, kafka, validate, zigzag
from tests.python.world.avro import combined, framed, record

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
FIXED_MONEY = {**MONEY, "type": "fixed", "name": "Money", "size": 12}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
# 1 in the five bytes of an int, with a bit too many.
WIDE_ONE = b"\x82\x80\x80\x80\x10"
TOO_WIDE_LONG = b"\xff" * 9 + b"\x02"


def chunk(content: bytes) -> bytes:
    return zigzag(len(content)) + content


def unscaled(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


CUT = unscaled(2**64 + 5)
BAD: list[tuple[Any, bytes, str]] = [
    (MONEY, chunk(CUT), "x: 184467440737095516.21 has more than 10 digits"),
    (MONEY, chunk(unscaled(-(2**64))), "x: -184467440737095516.16 has more than 10 digits"),
    (MONEY, chunk(unscaled(10**10)), "x: 100000000.00 has more than 10 digits"),
    (MONEY, chunk(b""), "x: a decimal without a byte"),
    (FIXED_MONEY, CUT.rjust(12, b"\0"), "x: 184467440737095516.21 has more than 10 digits"),
    (WIDE, chunk(unscaled(10**38)), f"x: 1{'0' * 38} has more than 38 digits"),
    (WIDE, chunk(unscaled(2**900)), "x: a number of 113 bytes has more than 38 digits"),
    ("string", chunk(b"\xff\xfe"), "x: not UTF-8"),
    ("string", chunk(b"eight by\xc0\x80"), "x: not UTF-8"),
    ("string", chunk(b"\xed\xa0\x80"), "x: not UTF-8"),
    ("string", chunk(b"\xf4\x90\x80\x80"), "x: not UTF-8"),
    ("string", chunk("ż".encode()[:1]), "x: not UTF-8"),
    ("boolean", b"\x02", "x: boolean byte 2"),
    ("boolean", b"\x81", "x: boolean byte 129"),
    ("int", zigzag(2**31), "x: 2147483648 is wider than an int"),
    ("int", b"\x82\x80\x80\x80\x80\x00", "x: an int of more than five bytes"),
    ("long", TOO_WIDE_LONG, "x: a number wider than a long"),
    ("long", b"\x80" * 10 + b"\x00", "x: a number of more than ten bytes"),
    (COLOUR, zigzag(3), "x: enum index 3 of 3"),
    (COLOUR, zigzag(-1), "x: enum index -1 of 3"),
    (COLOUR, WIDE_ONE, "x: 2147483649 is wider than an int"),
    (["null", "int"], zigzag(2), "x: union index 2 of 2"),
    (["null", "int"], WIDE_ONE + b"\x00", "x: 2147483649 is wider than an int"),
    (MILLIS, zigzag(2**60), f"x: {2**60} milliseconds are more than a timestamp holds"),
    ({"type": "array", "items": "boolean"}, b"\x04\x01\x03\x00", "x[]: boolean byte 3"),
    (
        {"type": "map", "values": ["null", MONEY]},
        b"\x02" + chunk(b"k") + b"\x02" + chunk(CUT) + b"\x00",
        "x{}: 184467440737095516.21 has more than 10 digits",
    ),
    ({"type": "map", "values": "int"}, b"\x02\x02\xff\x00\x00", "x{}: not UTF-8"),
    (
        {"type": "map", "values": "int"},
        b"\x04\x02k\x00\x02k\x02\x00",
        "x{}: duplicate key",
    ),
    (
        record(("y", {"type": "array", "items": record(("z", COLOUR), name="I")}), name="S"),
        b"\x02\x08\x00",
        "x.y[].z: enum index 4 of 3",
    ),
    (["null", "string", MONEY], b"\x04" + chunk(CUT), "x: 184467440737095516.21 has more"),
    ({"type": "array", "items": "int"}, b"\x01\x04\x02\x00", "x[]: a block whose declared size"),
    ({"type": "array", "items": "int"}, zigzag(-(2**63)) + b"\x00", "x[]: the bytes end early"),
    ({"type": "array", "items": record(name="E")}, zigzag(2**40), "x[]: more than 1000 items"),
    ("bytes", zigzag(-1), "x: a length of -1"),
    ("bytes", zigzag(2**40), "x: the bytes end early"),
    ("double", b"\0" * 7, "x: the bytes end early"),
]  # fmt: skip


def said(spark: SparkSession, schema: TopicSchema, values: list[bytes]) -> list[Row]:
    validated = validator("id", schema, None, 2**24).validate(kafka(spark, *values))
    rows = validated.records.orderBy("_kafka_offset").select("_error.*")
    return rows.collect()


def test_a_value_that_does_not_fit_is_set_aside_with_its_fields_name(spark: SparkSession) -> None:
    # A version for each type, all of one topic, so that Spark compiles once.
    kinds: list[Any] = []
    for kind, *_ in BAD:
        if kind not in kinds:
            kinds.append(kind)
    schema = combined(*(record((f"x{i}", kind)) for i, kind in enumerate(kinds)))
    assert not schema.incompatible
    versions = [kinds.index(kind) for kind, *_ in BAD]
    values = [header(i + 1) + damaged for i, (_, damaged, _) in zip(versions, BAD, strict=True)]
    reported = said(spark, schema, values)
    for i, row, (_, _, reason) in zip(versions, reported, BAD, strict=True):
        assert (row["stage"], row["error_class"]) == ("decode", "undecodable"), reason
        wanted = f"value schema {i + 1}: x{i}{reason.removeprefix('x')}"
        assert row["error_message"].startswith(wanted)
    # And frames leave each of them.
    validate(kafka(spark, *values), "id", schema, None)


def test_what_contains_itself_is_held_to_the_same_rules(spark: SparkSession) -> None:
    link = record(("paid", "boolean"), ("sum", MONEY), ("next", ["null", "n.L"]), name="L")
    good = b"\x01" + chunk(unscaled(5))
    endless = (good + b"\x02") * 501 + good + b"\x00"
    values = [good + b"\x00", good + b"\x02\x02", good + b"\x02\x00" + chunk(CUT), endless]
    reported = said(spark, combined(record(("x", link))), [header(1) + v for v in values])
    assert reported[0]["error_class"] is None
    for row, reason in zip(
        reported[1:],
        (
            "x.next.paid: boolean byte 2",
            "x.next.sum: 184467440737095516.21 has more than 10 digits",
            f"x.{'next.' * 39}nex ... {'.next' * 40}: more than 500 records deep",
        ),
        strict=True,
    ):
        assert row["error_class"] == "undecodable"
        assert row["error_message"] == f"value schema 1: {reason}"


def test_a_key_that_does_not_fit_sets_its_record_aside(spark: SparkSession) -> None:
    value = framed(1, record(("a", "int")), {"a": 1})
    keys = combine([WriterSchema(7, record(("paid", "boolean"))), WriterSchema(8, "null")])
    records = kafka(spark, value, key=header(7) + b"\x02")
    validated = validate(records, "id", combined(record(("a", "int"))), keys)
    (row,) = validated.records.select("_error.*").collect()
    assert row["error_class"] == "key_undecodable"
    assert row["error_message"] == "key schema 7: paid: boolean byte 2"


def test_the_widest_values_that_fit_arrive_unchanged(spark: SparkSession) -> None:
    shape = record(
        ("money", MONEY), ("wide", WIDE), ("fixed", FIXED_MONEY), ("day", "int"),
        ("big", "long"), ("text", "string"), ("at", MILLIS),
    )  # fmt: skip
    most = 10**10 - 1
    payload = (
        # More bytes than the number needs are not more digits.
        chunk((-most).to_bytes(12, "big", signed=True))
        + chunk(unscaled(10**38 - 1))
        + most.to_bytes(12, "big", signed=True)
        # As are more bytes than a number of Avro's needs.
        + b"\x82\x80\x80\x80\x00"
        + zigzag(-(2**63))
        + chunk("ż 🐢 \U0010ffff \x7f".encode())
        + zigzag((2**63 - 1) // 1000)
    )
    validated = validate(kafka(spark, header(1) + payload), "id", combined(shape), None)
    assert error_classes(validated.records) == [None]
    columns = validated.columns
    shown = [columns[n].cast("string").alias(n) for n in ("money", "wide", "fixed")]
    (row,) = validated.records.select(
        *shown, columns["day"].alias("day"), columns["big"].alias("big"),
        columns["text"].alias("text"), F.unix_micros(columns["at"]).alias("at"),
    ).collect()  # fmt: skip
    assert row == Row(
        money="-99999999.99", wide="9" * 38, fixed="99999999.99", day=1, big=-(2**63),
        text="ż 🐢 \U0010ffff \x7f", at=(2**63 - 1) // 1000 * 1000,
    )  # fmt: skip


NAMES = (
    "tail__", "head__", "broken__", "number__", "framing__", "it", "value", "wrapped__",
    "wrapper__", "_value", "_error", "_value_problem", "own", "bronze__", "select",
)  # fmt: skip


@pytest.mark.parametrize("nullable", [False, True])
def test_a_producer_may_name_its_fields_as_it_likes(spark: SparkSession, nullable: bool) -> None:
    fields = [
        (name, record(("it", "int"), name=f"N{i}") if i % 2 else "int")
        for i, name in enumerate(NAMES)
    ]
    shape: Any = record(*fields, ("nothing__", "null"))
    values = {n: {"it": i} if i % 2 else i for i, n in enumerate(NAMES)}
    written: Any = {**values, "nothing__": None}
    if nullable:
        shape = ["null", shape]
    schema = combine([WriterSchema(1, shape)], problem=schema_problem)
    assert not schema.incompatible
    validated = validate(kafka(spark, framed(1, shape, written)), "id", schema, None)
    assert error_classes(validated.records) == [None]
    named = [column.alias(name) for name, column in validated.columns.items()]
    (row,) = validated.records.select(*named).collect()
    assert row.asDict(recursive=True) == values


def test_a_name_that_only_java_dislikes_keeps_that_version_out(spark: SparkSession) -> None:
    """Python counts a superscript as part of a word; no column of Spark's decoder does."""
    good, odd = record(("a", "int")), record(("a", "int"), ("a²", "int"))
    schema = combine(
        [WriterSchema(1, good), WriterSchema(2, odd), WriterSchema(3, good)], problem=schema_problem
    )
    assert list(schema.incompatible) == [2]
    assert "a²" in schema.incompatible[2]
    values = [framed(number, good, {"a": 5}) for number in (1, 3)]
    assert error_classes(validate(kafka(spark, *values), "id", schema, None).records) == [None] * 2
