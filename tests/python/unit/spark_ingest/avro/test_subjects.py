"""Types of several subjects on one topic: each has a member of its own in the column ``value``.

Fails when the members, or which rows they take, depend on what was registered or met first.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from spark_ingest.avro.evolution import TopicSchema, combine
from spark_ingest.avro.framing import Ids
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.lake import bronze
from spark_ingest.records import topic_schemas
from spark_ingest.records.bronze_rows import subjects_alike
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import IngestMeta, Stream
from tests.python.unit.spark_ingest.avro.test_evolution import kinds, read


def typed(name: str, **fields: Any) -> dict[str, Any]:
    space, _, short = name.rpartition(".")
    named = [{"name": each, "type": kind} for each, kind in fields.items()]
    return {"type": "record", "name": short, "namespace": space, "fields": named}


PLACED = typed("com.acme.OrderPlaced", id="int", total="long")
PAID = typed("com.acme.OrderPaid", id="string")
PAID_LATER = typed("com.acme.OrderPaid", id="string", method=["null", "string"])
REFUNDED = typed("com.acme.OrderRefunded", id="int")
TYPES = ("com.acme.OrderPlaced", "com.acme.OrderPaid")


@dataclass
class Registry:
    """A registry of some subjects, each with the ids of its versions."""

    subject_ids: dict[str, list[int]]
    by_id: dict[int, Any]
    asked: list[str] = field(default_factory=list)
    url: str = "http://registry"

    def subject_schemas(self, subject: str, ids: Ids = "registry") -> list[WriterSchema]:
        self.asked.append(subject)
        return [WriterSchema(n, self.by_id[n]) for n in self.subject_ids.get(subject, [])]

    def schema(self, schema_id: int, ids: Ids = "registry") -> WriterSchema | None:
        known = self.by_id.get(schema_id)
        return None if known is None else WriterSchema(schema_id, known)


def stream(*subjects: str) -> Stream:
    ingest = IngestMeta(topic="orders", subjects=subjects or None)
    return Stream("shop.orders", "bronze.orders", "", {}, frozenset(), ingest)


def schemas_of(registry: Registry, *subjects: str) -> Schemas:
    real = cast(SchemaRegistry, registry)
    return Schemas(real, stream(*subjects), 0, lambda seconds: None)


def of_types(*schemas: Any, types: tuple[str, ...] = TYPES) -> TopicSchema:
    writers = [WriterSchema(number, each) for number, each in enumerate(schemas, 1)]
    return combine(writers, types=types)


def members(schema: TopicSchema) -> dict[str, str]:
    kind = cast(Any, schema.columns["value"].dataType)
    return {each.name: each.dataType.simpleString() for each in kind.fields}


def test_each_type_has_a_member_and_fields_of_one_name_may_differ_in_type() -> None:
    schema = of_types(PLACED, PAID)

    assert not schema.incompatible
    assert kinds(schema) == {
        "value": "struct<orderplaced:struct<id:int,total:bigint>,orderpaid:struct<id:string>>"
    }
    assert read(schema, 1, PLACED, {"id": 1, "total": 2}) == {"value": {"id": 1, "total": 2}}
    assert read(schema, 2, PAID, {"id": "x"}) == {"value": {"id": "x"}}
    names = [
        [branch["name"] for branch in reading.reader["fields"][0]["type"][1:]]
        for reading in schema.readings
    ]
    assert names == [["orderplaced", "orderpaid"]] * 2
    assert "value" in schema.docs


def test_a_type_evolves_by_itself_and_what_does_not_fit_it_is_incompatible_alone() -> None:
    clashing = typed("com.acme.OrderPaid", id="long")
    schema = of_types(PLACED, PAID, PAID_LATER, clashing)

    assert members(schema)["orderpaid"] == "struct<id:string,method:string>"
    assert list(schema.incompatible) == [4]
    assert "long where earlier versions have string" in schema.incompatible[4]
    assert read(schema, 2, PAID, {"id": "x"}) == {"value": {"id": "x", "method": None}}


def test_where_one_type_is_known_it_is_a_member_already() -> None:
    schema = of_types(PAID)
    assert schema.member == "orderpaid"
    assert members(schema) == {"orderpaid": "struct<id:string>"}
    assert of_types(PLACED, PAID).member is None
    assert not of_types("null").columns.fields


def test_names_follow_from_the_declaration_whatever_is_registered_or_met() -> None:
    types = ("a.Order", "b.Order", "b.Paid")
    writers = [
        WriterSchema(1, typed("a.Order", p="int")),
        WriterSchema(2, typed("b.Order", q="int")),
        WriterSchema(3, typed("b.Paid", r="int")),
        WriterSchema(4, typed("c.Paid", s="int")),
        WriterSchema(5, typed("Paid", t="int")),
        WriterSchema(6, typed("my-app.Sent", u="int")),
    ]
    wanted = {
        "order": "struct<p:int>",
        "b_order": "struct<q:int>",
        "paid": "struct<r:int>",
        "c_paid": "struct<s:int>",
        "paid_": "struct<t:int>",
        "my_app_sent": "struct<u:int>",
    }
    for count in range(1, 7):
        for some in itertools.permutations(writers, count):
            found = members(combine(some, types=types))
            assert found.items() <= wanted.items()
            assert len(found) == count


def test_what_the_table_has_with_a_namespace_keeps_it_when_it_is_declared() -> None:
    held = of_types(PLACED, PAID, REFUNDED).columns
    assert "com_acme_orderrefunded" in held["value"].dataType.simpleString()

    writers = [WriterSchema(3, REFUNDED)]
    schema = combine(writers, held, types=(*TYPES, "com.acme.OrderRefunded"))

    assert list(members(schema)) == ["com_acme_orderrefunded"]


def test_a_union_of_one_subject_keeps_the_names_that_its_table_has() -> None:
    left, right = typed("a.X", p="int"), typed("b.X", p="int")
    held = combine([WriterSchema(1, [left, right])]).columns
    turned = combine([WriterSchema(2, [right, left])], held)
    assert list(members(turned)) == ["b_x", "x"]


def test_a_type_may_be_a_union_itself() -> None:
    schema = of_types(PLACED, ["null", PAID, REFUNDED])
    assert not schema.incompatible
    assert list(members(schema)) == ["orderplaced", "orderpaid", "com_acme_orderrefunded"]


@pytest.mark.parametrize("around", [False, True])
def test_a_type_that_contains_itself_is_refused_beside_others(around: bool) -> None:
    node = typed("com.acme.Node", next=["null", "com.acme.Node"])
    schema = of_types(PLACED, [node, "string"] if around else node)
    assert list(schema.incompatible) == [2]
    assert "use a separate topic" in schema.incompatible[2]


def test_all_versions_of_the_declared_subjects_come_in_declared_order() -> None:
    placed, paid = "com.acme.OrderPlaced", "orders-com.acme.OrderPaid"
    registry = Registry({placed: [7], paid: [3, 9]}, {7: PLACED, 3: PAID, 9: PAID_LATER})
    schemas = schemas_of(registry, placed, paid)

    assert schemas.value().writers == (7, 3, 9)
    assert list(members(schemas.value())) == ["orderplaced", "orderpaid"]
    assert "orders-value" not in registry.asked
    assert schemas.unregistered() == ()
    absent = schemas_of(registry, placed, "com.acme.OrderPaid")
    assert absent.unregistered() == ("com.acme.OrderPaid",)


@pytest.mark.parametrize("met", list(itertools.permutations([4, 5, 6])))
def test_types_met_by_their_ids_are_the_same_in_whatever_order(met: tuple[int, ...]) -> None:
    by_id = {
        1: PLACED,
        2: PAID,
        4: typed("x.Sent", a="int"),
        5: typed("y.Sent", b="int"),
        6: typed("x.Sent", a="int", c="int"),
    }
    registry = Registry({TYPES[0]: [1], TYPES[1]: [2]}, by_id)
    schemas = schemas_of(registry, *TYPES)
    for number in met:
        assert schemas.learn([number], "value")
        schemas.value()

    assert schemas.value().writers == (1, 2, 4, 5, 6)
    assert members(schemas.value()) == {
        "orderplaced": "struct<id:int,total:bigint>",
        "orderpaid": "struct<id:string>",
        "x_sent": "struct<a:int,c:int>",
        "y_sent": "struct<b:int>",
    }


def test_what_the_table_took_first_counts_where_an_earlier_version_is_met_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_id = {2: PAID, 4: typed("x.Sent", a="string"), 5: typed("x.Sent", a="int")}
    registry = Registry({TYPES[1]: [2]}, by_id)
    schemas = schemas_of(registry, *TYPES)
    taken = schemas.value().columns
    lake = SimpleNamespace(table=lambda _: SimpleNamespace(schema=taken))
    monkeypatch.setattr(bronze, "exists", lambda *_: True)
    monkeypatch.setattr(topic_schemas, "schema_problem", None)
    for number in (5, 4):
        schemas.hold(cast(SparkSession, lake))
        assert schemas.learn([number], "value")
        if number == 5:
            taken = schemas.value().columns

    found = schemas.value()
    restarted = schemas_of(registry, *TYPES)
    restarted.hold(cast(SparkSession, lake))
    assert restarted.learn([4, 5], "value")
    for one in (found, restarted.value()):
        assert list(one.incompatible) == [4]
        assert members(one)["x_sent"] == "struct<a:int>"


def test_one_declared_subject_has_its_fields_as_columns_as_a_topic_does() -> None:
    registry = Registry({TYPES[1]: [2, 3]}, {1: PLACED, 2: PAID, 3: PAID_LATER})
    schemas = schemas_of(registry, TYPES[1])
    assert kinds(schemas.value()) == {"id": "string", "method": "string"}
    assert schemas.learn([1], "value")
    assert list(schemas.value().incompatible) == [1]


def test_subjects_that_a_topic_may_mean_are_those_named_after_it_or_its_records() -> None:
    there = [
        "orders-key",
        "orders-com.acme.OrderPaid",
        "com.acme.OrderPlaced",
        "other-value",
        "other-com.acme.OrderPaid",
    ]
    assert subjects_alike(there, stream()) == ["orders-com.acme.OrderPaid"]
    assert subjects_alike(there[2:], stream()) == ["com.acme.OrderPlaced"]
    assert subjects_alike(there, stream("acme.OrderPlaced")) == [
        "com.acme.OrderPlaced",
        "orders-com.acme.OrderPaid",
    ]
