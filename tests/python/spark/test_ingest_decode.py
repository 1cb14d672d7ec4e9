"""Records validated and decoded in Spark: each by its own writer, the bad separated from the good.

Fails when a record is decoded with another schema than its writer's, or a bad one passes for
good.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.framing import apicurio_headers, header
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.commits import quarantine_table
from spark_ingest.lake import bronze
from spark_ingest.records.bronze_rows import batch_columns, row_columns
from spark_ingest.records.validation import Validated, validator
from spark_ingest.streaming.batch_size import record_bytes
from spark_ingest.streaming.staged_batch import batch_counters, metric_columns
from tests.python.spark.arrow_frames import agree, frames_of
from tests.python.world.avro import combined, framed, record

ROW = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)


V1 = record(("id", "int"), ("note", "string"))
V2 = record(("id", "long"), ("note", "string"), ("tag", ["null", "string"]))


def kafka(spark: SparkSession, *values: bytes | None, key: bytes | None = None) -> DataFrame:
    rows = [(key, value, "t", 0, i, None, None) for i, value in enumerate(values)]
    return spark.createDataFrame(rows, ROW)


def validate(
    records: DataFrame, topic_id: str, value: TopicSchema, key: TopicSchema | None
) -> Validated:
    """Records validated by Spark, with the same result from frames of them."""
    validated = validator(topic_id, value, key, 2**24).validate(records)
    agree(validated, records)
    return validated


def error_classes(frame: DataFrame) -> list[str | None]:
    rows = frame.orderBy("_kafka_offset").select("_error.error_class").collect()
    return [row[0] for row in rows]


def decoded(spark: SparkSession, schema: TopicSchema, *values: bytes | None) -> list[Row]:
    validated = validate(kafka(spark, *values), "id", schema, None)
    assert error_classes(validated.records) == [None] * len(values)
    columns = [column.alias(name) for name, column in validated.columns.items()]
    return validated.records.orderBy("_kafka_offset").select(*columns).collect()


def test_each_record_is_read_with_the_schema_that_wrote_it(spark: SparkSession) -> None:
    schema = combined(V1, V2)
    assert decoded(
        spark,
        schema,
        framed(2, V2, {"id": 2**40, "note": "b", "tag": "t"}),
        framed(1, V1, {"id": 1, "note": "a"}),
        None,
    ) == [
        Row(id=2**40, note="b", tag="t"),
        Row(id=1, note="a", tag=None),
        Row(id=None, note=None, tag=None),
    ]


def test_the_first_of_several_types_is_a_member_before_the_others_come(spark: SparkSession) -> None:
    def paid(size: int, precision: int) -> dict[str, Any]:
        amount = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal"}
        amount |= {"precision": precision, "scale": 2}
        return record(("id", "int"), ("amount", amount), name="Paid")

    def sent(number: int, schema: Any, value: Decimal) -> bytes:
        return framed(number, schema, {"id": number, "amount": value})

    # The first one's decimals fill their bytes, so what is read is cast to the column.
    small, large = paid(2, 4), ["null", paid(8, 18)]
    writers = [WriterSchema(1, small), WriterSchema(2, large)]
    schema = combine(writers, types=["n.Placed", "n.Paid"])
    assert schema.readings[0].cast
    first, second = Decimal("12.34"), Decimal("1234567890123456.78")
    wide = {"id": 2, "amount": second}

    assert decoded(spark, schema, sent(1, small, first), framed(2, large, wide), None) == [
        Row(value=Row(paid=Row(id=1, amount=first))),
        Row(value=Row(paid=Row(id=2, amount=second))),
        Row(value=None),
    ]
    assert decoded(spark, schema, framed(2, large, None)) == [Row(value=None)]


def test_bad_records_of_every_kind_are_distinguished(spark: SparkSession) -> None:
    good = framed(1, V1, {"id": 1, "note": "a long enough note"})
    of_v2 = framed(2, V2, {"id": 9, "note": "x", "tag": None})
    records = kafka(
        spark,
        good,
        None,  # a tombstone is good
        good[:-3],  # truncated
        good + b"\x00",  # a byte left over
        header(1) + b"\xff" * 40,  # garbage
        header(99) + good[5:],  # an id that the registry does not know
        b"\x00\xff\xff\xff\xff" + good[5:],  # the largest number that fits the framing
        header(1) + of_v2[5:],  # another schema's bytes
        b"\x00\x01",  # shorter than a frame
        b'{"id": 1}',  # not framed at all
        b"",
        header(1),  # nothing behind the frame
    )
    validated = validate(records, "id", combined(V1, V2), None)
    assert error_classes(validated.records) == [
        None,
        None,
        "undecodable",
        "left_over_bytes",
        "undecodable",
        *["unknown_id"] * 2,
        "left_over_bytes",
        *["not_framed"] * 3,
        "undecodable",
    ]
    bad = validated.records.where("_error is not null").select(
        *quarantine_table.rows("_error", F.lit(datetime.now(UTC)))
    )
    reported = [row["error_message"] for row in bad.orderBy("_kafka_offset").collect()]
    behind = "trailing bytes follow"
    assert reported == [
        "value schema 1: note: the bytes end early",
        f"value of {len(good) + 1} bytes: its schema ends at byte {len(good)}, {behind}",
        "value schema 1: id: the bytes end early",
        "value schema 99 is not in the registry",
        "value schema 4294967295 is not in the registry",
        f"value of {len(of_v2)} bytes: its schema ends at byte {len(of_v2) - 1}, {behind}",
        "value of 2 bytes has no Confluent framing",
        "value of 9 bytes has no Confluent framing",
        "value of 0 bytes has no Confluent framing",
        "value schema 1: id: the bytes end early",
    ]


def test_a_row_of_a_frame_has_nothing_of_a_record_that_was_left(spark: SparkSession) -> None:
    left = framed(2, V2, {"id": 9, "note": "x", "tag": "of another"}) + b"\x00"
    records = kafka(spark, left, framed(1, V1, {"id": 1, "note": "y"})).coalesce(1)
    made = frames_of(validate(records, "id", combined(V1, V2), None), records)
    assert made is not None
    assert made.rows.select(["id", "note", "tag"]).to_pylist() == [
        {"id": 1, "note": "y", "tag": None}
    ]


def test_frames_leave_no_more_than_they_may_carry(spark: SparkSession) -> None:
    good = framed(1, V1, {"id": 1, "note": "y"})
    records = kafka(spark, good, b"first", b"other", good, good).coalesce(1)
    validated = validate(records, "id", combined(V1, V2), None)
    made = frames_of(validated, records, most_left=300)
    assert made is not None
    # The other is counted, and what comes behind it is left to whoever validates all.
    assert (made.left, made.counts[:2]) == ([1], (1, 2))
    long = frames_of(validated, records, longest=len(good) - 1)
    assert long is not None
    assert long.left == [0, 1, 2, 3, 4]


def zigzag(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    return out.getvalue()


@pytest.mark.parametrize("length", [10**6, 2**30, 2**31 - 9, 2**40, -5])
def test_a_claimed_length_does_not_take_the_memory(spark: SparkSession, length: int) -> None:
    value = header(1) + zigzag(7) + zigzag(length) + b"x" * 50
    validated = validate(kafka(spark, value), "id", combined(V1), None)
    assert error_classes(validated.records) == ["undecodable"]


def test_an_incompatible_version_is_quarantined_with_the_reason(spark: SparkSession) -> None:
    other = record(("id", "string"), ("note", "string"))
    values = (framed(2, other, {"id": "x", "note": "y"}), framed(1, V1, {"id": 1, "note": "a"}))
    validated = validate(kafka(spark, *values), "id", combined(V1, other), None)
    rows = validated.records.orderBy("_kafka_offset").select(
        *quarantine_table.rows("_error", F.lit(datetime.now(UTC)))
    )
    first, second = rows.collect()
    assert first["error_class"] == "incompatible"
    assert first["error_message"].endswith("id: string where earlier versions have int")
    assert first["_schema_id"] == 2
    assert bytes(first["_kafka_value"]) == values[0]
    assert second["error_class"] is None


def test_keys_are_decoded_and_a_bad_key_sets_the_record_aside(spark: SparkSession) -> None:
    value = framed(1, V1, {"id": 1, "note": "a"})
    keys = combine([WriterSchema(7, "int")])
    good = validate(kafka(spark, value, key=framed(7, "int", 42)), "id", combined(V1), keys)
    assert good.records.select(good.columns["_key"].alias("k")).collect() == [Row(k=42)]
    for key, said in ((b"abc", "key_not_framed"), (header(8) + b"\x02", "key_unknown_id")):
        validated = validate(kafka(spark, value, key=key), "id", combined(V1), keys)
        assert error_classes(validated.records) == [said]
    none = validate(kafka(spark, value), "id", combined(V1), keys)
    assert error_classes(none.records) == [None]


def test_a_record_key_becomes_a_struct(spark: SparkSession) -> None:
    shape = record(("a", "int"), ("b", "string"))
    key = framed(7, shape, {"a": 1, "b": "x"})
    validated = validate(
        kafka(spark, framed(1, V1, {"id": 1, "note": "a"}), key=key),
        "id",
        combined(V1),
        combine([WriterSchema(7, shape)]),
    )
    assert validated.records.select(validated.columns["_key"].alias("k")).collect() == [
        Row(k=Row(a=1, b="x"))
    ]


def test_without_any_usable_schema_values_are_unknown_and_tombstones_good(
    spark: SparkSession,
) -> None:
    validated = validate(
        kafka(spark, framed(1, V1, {"id": 1, "note": ""}), None), "id", combined(), None
    )
    assert error_classes(validated.records) == ["unknown_id", None]


def test_nested_records_arrays_and_maps_are_merged_inside(spark: SparkSession) -> None:
    def version(*inner: tuple[str, Any]) -> dict[str, Any]:
        return record(
            ("one", record(*inner, name="S")),
            ("many", {"type": "array", "items": "n.S"}),
            ("named", {"type": "map", "values": ["null", "n.S"]}),
        )

    v1, v2 = version(("x", "int")), version(("x", "long"), ("y", "string"))
    schema = combined(v1, v2)
    assert not schema.incompatible
    old, new = {"x": 1}, {"x": 1, "y": "z"}
    first, second = decoded(
        spark,
        schema,
        framed(1, v1, {"one": old, "many": [old], "named": {"k": old}}),
        framed(2, v2, {"one": new, "many": [new], "named": {"k": None}}),
    )
    half, full = Row(x=1, y=None), Row(x=1, y="z")
    assert first == Row(one=half, many=[half], named={"k": half})
    assert second == Row(one=full, many=[full], named={"k": None})


def test_nested_fields_meet_a_tables_by_name_and_not_by_place(spark: SparkSession) -> None:
    have = StructType.fromDDL(
        "s struct<a:string,b:string>, l array<struct<a:int,b:int>>, m map<string,struct<a:int>>"
    )
    want = StructType.fromDDL(
        "s struct<b:string,c:int,a:string>, l array<struct<b:int,a:bigint>>, "
        "m map<string,struct<z:int,a:int>>"
    )
    assert isinstance(have, StructType)
    assert isinstance(want, StructType)
    rows = spark.createDataFrame(
        [(("x", "y"), [(1, 2)], {"k": (5,)}), (None, None, None)], schema=have
    )
    put = [
        bronze.conform(F.col(w.name), h.dataType, w.dataType).alias(w.name)
        for h, w in zip(have.fields, want.fields, strict=True)
    ]
    full, empty = rows.select(*put).collect()
    assert full["s"] == Row(b="y", c=None, a="x")
    assert full["l"] == [Row(b=2, a=1)]
    assert full["m"] == {"k": Row(z=None, a=5)}
    assert tuple(empty) == (None, None, None)


def test_an_array_that_claims_millions_of_items_is_bad(spark: SparkSession) -> None:
    shape = record(("a", {"type": "array", "items": "int"}))
    value = header(1) + zigzag(500_000_000) + b"\x02" * 10
    validated = validate(kafka(spark, value), "id", combined(shape), None)
    assert error_classes(validated.records) == ["undecodable"]


def test_meanings_survive(spark: SparkSession) -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    when = {"type": "long", "logicalType": "timestamp-micros"}
    day = {"type": "int", "logicalType": "date"}
    kind = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    code = {"type": "fixed", "name": "F", "size": 2}
    shape = record(("m", money), ("t", when), ("d", day), ("e", kind), ("f", code))
    at = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    value = {"m": Decimal("-0.01"), "t": at, "d": at.date(), "e": "B", "f": b"xy"}
    schema = combined(shape)
    validated = validate(kafka(spark, framed(1, shape, value)), "id", schema, None)
    types = validated.columns
    row = validated.records.select(
        types["m"].alias("m"),
        types["t"].cast("string").alias("t"),
        types["d"].alias("d"),
        types["e"].alias("e"),
        types["f"].alias("f"),
    ).first()
    assert row is not None
    assert row["m"] == Decimal("-0.01")
    assert row["t"] == "1969-12-31 23:59:59.999999"
    assert row["d"] == at.date()
    assert (row["e"], bytes(row["f"])) == ("B", b"xy")


def test_values_that_are_no_records_become_a_column(spark: SparkSession) -> None:
    assert decoded(spark, combined("string"), framed(1, "string", "x")) == [Row(value="x")]


def test_a_record_that_may_be_null_keeps_what_contains_itself(spark: SparkSession) -> None:
    node = record(("id", "int"), ("next", ["null", "n.Node"]), name="Node")
    maybe = ["null", node]
    assert decoded(
        spark,
        combined(maybe, node),
        framed(1, maybe, {"id": 1, "next": {"id": 2, "next": None}}),
        framed(1, maybe, None),
        framed(2, node, {"id": 3, "next": None}),
    ) == [Row(id=1, next='{"id":2,"next":null}'), Row(id=None, next=None), Row(id=3, next=None)]


def test_a_record_is_decoded_once(spark: SparkSession) -> None:
    """The optimizer repeats a decode when a filter reaches through the projection."""
    validated = validate(kafka(spark, None), "id", combined(V1, V2), None)
    from pyspark.sql import Observation

    counted = validated.records.observe(Observation(), F.count_if(F.col("_error").isNotNull()))
    good = counted.where(F.col("_error").isNull()).select(*validated.columns.values())
    plan = good._jdf.queryExecution().executedPlan().toString()
    assert plan.lower().count("from_avro(") == len(combined(V1, V2).writers)


def test_a_row_is_made_once_on_its_way_to_the_table(spark: SparkSession) -> None:
    """A column of another type, or a function without generated code, costs a copy of each."""
    validated = validate(kafka(spark, b"junk"), "id", combined(V1, V2), None)
    # Fields that came later stand behind the metadata.
    columns = bronze.table_columns(validated.schema())
    table = StructType([*columns.fields[1:], columns.fields[0]])
    rows = row_columns(validated.columns, validated.schema(), table)
    rows |= batch_columns(7, datetime(2026, 1, 31, 9, 0, 0, 5, tzinfo=UTC))

    made = validated.records.select(
        *(rows[name] for name in table.names), *metric_columns(["value"], 8000)
    )
    seen = made.observe(Observation(), *batch_counters(["value"], 16_384))
    good = seen.where("not _millrace_bad").drop(*bronze.WORKING)

    assert [(f.name, f.dataType) for f in good.schema] == [(f.name, f.dataType) for f in table]
    plan = str(good._jdf.queryExecution().executedPlan())
    steps = [line.lstrip(" +-:") for line in plan.splitlines()]
    assert steps
    assert [step for step in steps if step.startswith(("Project", "Filter"))] == []
    when = made.select("_commit_id", F.unix_micros("_ingested_at"))
    assert when.collect() == [(7, 1_769_850_000_000_005)]


def test_keys_and_headers_count_in_how_large_records_are(spark: SparkSession) -> None:
    value, key, headers = framed(1, V1, {"id": 1, "note": ""}), b"k" * 2000, b"h" * 500
    row = (key, value, "t", 0, 0, None, [("h", headers)])
    records = spark.createDataFrame([row] * 3, ROW)
    size = record_bytes(records)
    assert size is not None
    assert 2500 + len(value) <= size < 2550
    validated = validate(records, "id", combined(V1), None).records
    noted = validated.select("_kafka_key", "_kafka_headers", *metric_columns(["value"], 8000))
    counted = noted.agg(*batch_counters(["value"], 1)).collect()[0]
    assert counted[2] + counted[3] == pytest.approx(3 * size)


def test_of_several_headers_the_last_says_the_schema(spark: SparkSession) -> None:
    there = record(("x", "long"), ("y", "long"))
    back = record(("y", "long"), ("x", "long"))
    writers = [WriterSchema(1, there), WriterSchema(2, back)]
    schema = combine(writers, framing=apicurio_headers("global"))
    name = "apicurio.value.globalId"
    one, two = (number.to_bytes(8, "big") for number in (1, 2))
    headers = [
        [(name, one), (name, two)],
        [(name, two), ("other", one), (name, one)],
        [(name, one), (name, None)],
        [(name, one), (name, two[4:])],
        [],
    ]
    rows = [(None, b"\2\4", "t", 0, at, None, each) for at, each in enumerate(headers)]

    validated = validate(spark.createDataFrame(rows, ROW), "id", schema, None)

    assert error_classes(validated.records) == [None, None, *["not_framed"] * 3]
    columns = [column.alias(name) for name, column in validated.columns.items()]
    found = validated.records.orderBy("_kafka_offset").select(*columns).take(2)
    assert found == [Row(x=2, y=1), Row(x=1, y=2)]


@pytest.mark.parametrize("space", ["abc-123.orders", "com.acme.2024.v1", ".topLevelRecord"])
def test_a_namespace_that_only_java_takes_is_read(spark: SparkSession, space: str) -> None:
    node = record(("next", ["null", f"{space}.Node"]), name="Node") | {"namespace": space}
    schema = record(("a", "int"), ("node", node)) | {"namespace": space}

    (row,) = decoded(spark, combined(schema), header(1) + b"\x0a\x02\x00")

    assert (row["a"], json.loads(row["node"])["next"] is not None) == (5, True)


def test_of_a_decimal_of_64_digits_a_value_that_is_too_long_is_bad_alone(
    spark: SparkSession,
) -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    schema = record(("id", "int"), ("amount", ["null", money]))
    values = [Decimal("12.34"), None, Decimal(f"{'9' * 36}.99"), Decimal(f"1{'0' * 36}.00")]
    records = [framed(1, schema, {"id": at, "amount": value}) for at, value in enumerate(values)]

    assert [row["amount"] for row in decoded(spark, combined(schema), *records[:3])] == values[:3]
    validated = validate(kafka(spark, *records), "id", combined(schema), None)
    assert error_classes(validated.records) == [None, None, None, "undecodable"]


def test_a_decimal_of_more_places_than_digits_has_its_value(spark: SparkSession) -> None:
    tiny = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 5}
    schema = record(("a", tiny))

    (row,) = decoded(spark, combined(schema), header(1) + b"\x02\x7b")

    assert row["a"] == Decimal("0.00123")
