"""Versions of a topic's schema put together."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from spark_ingest.avro import json_text
from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.schema import WriterSchema
from tests.python.world.avro import combined, record


def read(schema: TopicSchema, writer_id: int, writer: Any, value: Any) -> Any:
    """What the topic makes of a value that one of the writers wrote."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(writer), value)
    out.seek(0)
    (reading,) = [r for r in schema.readings if writer_id in r.ids]
    return fastavro.schemaless_reader(
        out, fastavro.parse_schema(reading.writer), fastavro.parse_schema(reading.reader)
    )


def kinds(schema: TopicSchema) -> dict[str, str]:
    return {f.name: f.dataType.simpleString() for f in schema.columns.fields}


def test_every_field_of_every_version_is_there_and_absent_is_null() -> None:
    with_default = {"name": "b", "type": "string", "default": "invented"}
    old, new = record(("a", "int")), record(("a", "int"))
    new["fields"].append(with_default)
    schema = combined(old, new)
    assert read(schema, 1, old, {"a": 1}) == {"a": 1, "b": None}
    assert read(schema, 2, new, {"a": 1, "b": "x"}) == {"a": 1, "b": "x"}


def test_a_renamed_field_is_a_new_column_whatever_its_aliases() -> None:
    old, renamed = record(("client", "int")), record(("customer", "int"))
    renamed["fields"][0]["aliases"] = ["client"]
    schema = combined(old, renamed)
    assert read(schema, 1, old, {"client": 7}) == {"client": 7, "customer": None}
    assert read(schema, 2, renamed, {"customer": 7}) == {"client": None, "customer": 7}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("int", "long", 5),
        ("long", "int", 5),
        ("float", "double", 0.5),
        ("int", ["null", "int"], 5),
        ("null", "int", None),
    ],
)
def test_types_that_grow_take_both(old: Any, new: Any, value: Any) -> None:
    old, new = record(("a", old)), record(("a", new))
    schema = combined(old, new)
    assert not schema.incompatible
    assert read(schema, 1, old, {"a": value}) == {"a": value}
    assert read(schema, 2, new, {"a": value or 5}) == {"a": value or 5}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def test_a_decimal_grows_in_precision_only() -> None:
    schema = combined(record(("a", decimal(10, 2))), record(("a", decimal(12, 2))))
    assert kinds(schema) == {"a": "decimal(12,2)"}
    schema = combined(record(("a", decimal(10, 2))), record(("a", decimal(10, 3))))
    assert schema.incompatible == {
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
        ("int", ["int", "string"]),
        (record(("x", "int"), name="S"), ["int", record(("x", "int"), name="S")]),
        ("string", record(("next", ["null", "n.S"]), name="S")),
    ],
)
def test_a_version_that_does_not_fit_is_named_and_the_others_stay(old: Any, new: Any) -> None:
    schema = combined(record(("a", old)), record(("a", new)), record(("a", old), ("b", "int")))
    assert list(schema.incompatible) == [2]
    assert schema.incompatible[2].startswith("a")
    assert sorted(schema.writers) == [1, 3]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("string", {"type": "enum", "name": "E", "symbols": ["A"]}),
        ("string", {"type": "string", "logicalType": "uuid"}),
        ("bytes", {"type": "fixed", "name": "F", "size": 2}),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
        ),
        (decimal(9, 2), {**decimal(9, 2), "type": "fixed", "name": "F", "size": 4}),
    ],
)
def test_types_that_share_a_column_fit_each_other(old: Any, new: Any) -> None:
    schema = combined(record(("a", old)), record(("a", new)))
    assert not schema.incompatible
    back = combined(record(("a", new)), record(("a", old)))
    assert not back.incompatible
    assert schema.columns == back.columns


def test_what_differs_in_words_alone_is_read_alike() -> None:
    worded = record(("a", "int"))
    worded["doc"] = "A record."
    worded["fields"][0] |= {"doc": "The a.", "default": 7, "aliases": ["old_a"]}
    schema = combined(record(("a", "int")), worded)
    assert [reading.ids for reading in schema.readings] == [(1, 2)]
    assert schema.docs == {"a": "The a."}


def test_a_decimal_that_says_no_precision_is_bytes_as_avro_demands() -> None:
    schema = combined(record(("a", {"type": "bytes", "logicalType": "decimal"})))
    assert kinds(schema) == {"a": "binary"}


def test_a_decimal_of_more_digits_than_a_column_has_all_that_a_column_has() -> None:
    schema = combined(record(("a", decimal(10, 2))), record(("a", ["null", decimal(64, 2)])))
    assert not schema.incompatible
    assert kinds(schema) == {"a": "decimal(38,2)"}
    assert schema.docs["a"] == (
        "decimal(64,2) in the schema: a value of more than 38 digits is quarantined."
    )


def test_a_decimal_of_more_places_than_digits_has_its_places() -> None:
    schema = combined(record(("a", decimal(3, 5))), record(("a", decimal(5, 5))))
    assert not schema.incompatible
    assert kinds(schema) == {"a": "decimal(5,5)"}


@pytest.mark.parametrize("scale", [-2, 50])
def test_a_decimal_that_no_column_has_is_its_bytes(scale: int) -> None:
    schema = combined(record(("a", decimal(60, scale)), ("b", "int")))
    assert kinds(schema) == {"a": "binary", "b": "int"}
    assert schema.docs["a"].endswith("the bytes of its unscaled number, big-endian.")


def test_fields_that_differ_in_case_alone_are_incompatible() -> None:
    schema = combined(record(("city", "string")), record(("city", "string"), ("City", "string")))
    assert schema.incompatible == {2: "value: fields city and City differ only in case"}
    schema = combined(record(("city", "string")), record(("City", "string")))
    assert list(schema.incompatible) == [2]


def test_enums_take_the_symbols_of_all_versions_whatever_they_are_called() -> None:
    def enum(*symbols: str, name: str = "E") -> dict[str, Any]:
        return {"type": "enum", "name": name, "symbols": list(symbols)}

    old, new = record(("e", enum("A"))), record(("e", enum("B", "A", name="F")))
    schema = combined(old, new)
    assert read(schema, 1, old, {"e": "A"}) == {"e": "A"}
    assert read(schema, 2, new, {"e": "B"}) == {"e": "B"}


def test_a_union_has_a_member_for_each_type_and_keeps_their_names() -> None:
    one, other = record(("x", "int"), name="a.P"), record(("y", "int"), name="b.P")
    old = record(("u", ["null", "int", one]))
    new = record(("u", ["string", other, "null", "double", "int", one]))
    assert kinds(combined(old)) == {"u": "struct<long:bigint,p:struct<x:int>>"}
    schema = combined(old, new)
    assert not schema.incompatible
    assert kinds(schema) == {
        "u": "struct<long:bigint,p:struct<x:int>,string:string,b_p:struct<y:int>,double:double>"
    }
    plain = record(("u", "int"))
    assert not combined(old, plain).incompatible


def test_a_union_of_numbers_is_the_wider_one() -> None:
    schema = combined(record(("a", ["int", "null", "long"])))
    assert kinds(schema) == {"a": "bigint"}


def test_a_union_of_a_date_and_a_number_is_incompatible() -> None:
    day = {"type": "int", "logicalType": "date"}
    assert list(combined(record(("a", [day, "long"]))).incompatible) == [1]


NODE = record(("value", "int"), ("next", ["null", "n.Node"]), name="Node")


def test_what_contains_itself_is_text() -> None:
    schema = combined(NODE)
    assert kinds(schema) == {"value": "int", "next": "string"}
    assert schema.texts == ("next",)
    around = record(("a", {"type": "array", "items": NODE}), ("b", "n.Node"))
    assert kinds(combined(around)) == {"a": "string", "b": "string"}
    assert combined(around, record(("a", "string"))).writers == (1, 2)


def test_what_contains_itself_needs_no_namespace() -> None:
    def bare(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
        return {
            key: value for key, value in record(*fields, name=name).items() if key != "namespace"
        }

    link = bare("Link", ("next", ["null", "Link"]))
    outer = bare(
        "Out", ("a", link), ("b", record(("in", ["null", "n.In"]), name="In")), ("c", "Link")
    )
    schema = combined(outer)
    assert schema.texts == ("a", "b", "c")
    chain: dict[str, Any] = {"next": {"next": None}}
    value = {"a": chain, "b": {"in": {"in": None}}, "c": {"next": None}}
    assert read(schema, 1, outer, value) == {}
    (reading,) = schema.readings
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(outer), value)
    texts = json_text.reader(reading.writer, schema.texts)(out.getvalue())
    assert [json.loads(text or "") for text in texts or ()] == list(value.values())


def test_fields_of_nothing_have_no_column_until_they_have_a_type() -> None:
    nothing = record(("a", "int"), ("n", "null"), ("e", record(name="Empty")))
    assert kinds(combined(nothing)) == {"a": "int", "e": "struct<_empty:boolean>"}
    something = record(("n", "string"), ("e", record(("x", "int"), name="Empty")))
    assert kinds(combined(nothing, something)) == {
        "a": "int", "n": "string", "e": "struct<x:int>"
    }  # fmt: skip
    assert kinds(combined(record())) == {}


def test_a_field_of_nothing_may_become_a_date() -> None:
    date = {"type": "int", "logicalType": "date"}
    nothing = record(("n", "null"))
    schema = combined(nothing, record(("n", date)))
    first, _ = schema.readings
    assert [field["type"] for field in first.reader["fields"]] == [["null", date]]
    assert read(schema, 1, nothing, {"n": None}) == {"n": None}


def test_types_of_other_registered_schemas_are_found() -> None:
    address = record(("street", "string"), name="Address")
    person = record(("home", "n.Address"), ("work", ["null", "Address"]))
    schema = combine([WriterSchema(1, person, (address,))])
    assert kinds(schema) == {
        "home": "struct<street:string>", "work": "struct<street:string>"
    }  # fmt: skip
    assert combine([WriterSchema(1, person)]).incompatible == {
        1: "home: the type n.Address is not defined"
    }


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "record", "name": "R"},
        {"type": "enum", "name": "E", "symbols": ["a-b"]},
        record(("a", "int"), ("a", "int")),
        record(("a b", "int")),
        {"name": "R"},
        7,
    ],
)
def test_what_is_no_schema_is_incompatible_and_no_error(broken: Any) -> None:
    assert list(combined(broken).incompatible) == [1]


def test_a_field_with_the_name_of_an_ingest_column_gets_another() -> None:
    old = record(("_Key", "int"), ("a", "int"))
    new = ["null", record(("a", "int"), ("_Key", "long"))]
    schema = combine([WriterSchema(1, old), WriterSchema(2, new)], reserved=["_key"])
    assert schema.incompatible == {}
    assert kinds(schema) == {"field__Key": "bigint", "a": "int"}
    assert read(schema, 1, old, {"_Key": 1, "a": 2}) == {"value": {"field__Key": 1, "a": 2}}
    both = combine(
        [WriterSchema(1, record(("_key", "int"), ("field__key", "int")))], reserved=["_key"]
    )
    assert list(both.incompatible) == [1]


def test_a_version_that_the_table_cannot_hold_is_incompatible() -> None:
    held = StructType(
        [
            StructField("a", IntegerType()),
            StructField("s", StructType([StructField("x", LongType())])),
            StructField("City", StringType()),
        ]
    )
    fits = record(("a", "long"), ("s", record(("x", "int"), ("y", "int"), name="S")))
    for field, said in (
        (("a", "string"), "a: string where the table has int"),
        (("s", "int"), "s: int where the table has struct<x:bigint>"),
        (("city", "string"), "city: the table has City, and columns are case-insensitive"),
    ):
        writers = [WriterSchema(1, fits), WriterSchema(2, record(field))]
        schema = combine(writers[1:], held)
        assert schema.incompatible == {2: said}
        assert combine(writers, held).writers == (1,)


def test_values_that_are_no_records_are_one_column() -> None:
    assert kinds(combined("int", "long")) == {"value": "bigint"}
    several = combined([record(("x", "int"), name="A"), record(("y", "int"), name="B")])
    assert kinds(several) == {"value": "struct<a:struct<x:int>,b:struct<y:int>>"}
    maybe = combined(record(("x", "int")), ["null", record(("x", "int"), ("y", "int"))])
    assert kinds(maybe) == {"x": "int", "y": "int"}
    assert maybe.wrapped


def test_a_null_that_is_written_as_an_object_is_null() -> None:
    null, node = {"type": "null"}, record(("x", "int"))
    schema = combined([null, node], ["null", node], [node, null])
    assert (schema.incompatible, kinds(schema)) == ({}, {"x": "int"})
    assert kinds(combined([null, NODE])) == {"value": "int", "next": "string"}


def test_a_schema_that_is_not_avro_is_incompatible() -> None:
    assert combine([WriterSchema(1, None, problem="a JSON schema")]).incompatible == {
        1: "a JSON schema"
    }


@pytest.mark.parametrize("space", ["abc-123.orders", "com.acme.2024.v1", ".topLevelRecord"])
def test_a_namespace_may_be_any_text(space: str) -> None:
    inner = {**record(("p", "int"), name="In"), "namespace": space}
    schema = {**record(("a", "int"), ("in", inner), ("again", f"{space}.In")), "namespace": space}

    assert kinds(combined(schema)) == {"a": "int", "in": "struct<p:int>", "again": "struct<p:int>"}


def test_what_is_defined_twice_and_not_alike_is_incompatible() -> None:
    first, second = record(("p", "int"), name="Z"), record(("q", "string"), name="Z")
    said = "n.Z has two different definitions"

    (why,) = combined(record(("f", first), ("g", second))).incompatible.values()
    assert why.startswith(said)
    assert not combined(record(("f", first), ("g", dict(first)))).incompatible

    money = [record(("amount", "long"), name="Money"), record(("amount", "int"), name="Money")]
    uses = [record(("m", "n.Money"), name="A"), record(("m", "n.Money"), name="B")]
    both = ["n.A", "n.B"]
    of_one = WriterSchema(1, both, (money[0], uses[0], money[0], uses[1]))
    of_two = WriterSchema(2, both, (money[0], uses[0], money[1], uses[1]))
    (why,) = combine([of_one, of_two]).incompatible.values()
    assert why.startswith("n.Money has two different definitions")


def test_a_reference_that_is_no_schema_is_incompatible() -> None:
    assert list(combine([WriterSchema(1, "n.A", ({"type": "record"},))]).incompatible) == [1]


DEBEZIUM = "io.debezium.time"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param(
            {"type": "long", "connect.name": f"{DEBEZIUM}.Timestamp"},
            {"type": "long", "connect.name": f"{DEBEZIUM}.MicroTimestamp"},
            f"a: long of {DEBEZIUM}.MicroTimestamp where earlier versions have long of "
            f"{DEBEZIUM}.Timestamp",
            id="timestamp(3) becomes timestamp(6)",
        ),
        pytest.param(
            {"type": "int", "connect.name": f"{DEBEZIUM}.Date"},
            {"type": "long", "connect.name": f"{DEBEZIUM}.Timestamp"},
            f"a: long of {DEBEZIUM}.Timestamp where earlier versions have int of {DEBEZIUM}.Date",
            id="a date becomes a moment",
        ),
        pytest.param(
            {"type": "int", "logicalType": "time-millis"},
            {"type": "long", "logicalType": "time-micros"},
            "a: long of time-micros where earlier versions have int of time-millis",
            id="a time becomes finer",
        ),
        pytest.param(
            "long",
            {"type": "long", "logicalType": "timestamp-nanos"},
            "a: long of timestamp-nanos where earlier versions have long",
            id="a number becomes a moment",
        ),
    ],
)
def test_numbers_of_two_units_share_no_column(old: Any, new: Any, why: str) -> None:
    schema = combined(record(("a", ["null", old])), record(("a", ["null", new])))
    assert schema.incompatible == {2: why}
    assert combined(record(("a", old)), record(("a", ["null", old]))).incompatible == {}


def test_a_union_of_two_units_is_refused_and_one_of_a_unit_keeps_its_member() -> None:
    millis = {"type": "int", "logicalType": "time-millis"}
    micros = {"type": "long", "logicalType": "time-micros"}
    both = combined(record(("a", ["null", millis, micros])))
    assert both.incompatible == {
        1: "a: long of time-micros where earlier versions have long of time-millis"
    }
    assert kinds(combined(record(("a", [millis, "string"])))) == {
        "a": "struct<long:bigint,string:string>"
    }
