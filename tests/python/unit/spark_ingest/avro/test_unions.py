"""Members of unions keep their names, whatever a registry or a producer does to those of types.

Fails when rows of one type land in the column of another, or in a new one for a new namespace.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from spark_ingest.avro.evolution import combine
from spark_ingest.avro.schema import WriterSchema
from tests.python.unit.spark_ingest.avro.test_evolution import kinds, read
from tests.python.world.avro import combined, record


def typed(name: str, *fields: str) -> dict[str, Any]:
    return record(*((field, "int") for field in fields), name=name)


def test_a_table_gives_members_their_names_when_the_first_version_is_gone() -> None:
    first = record(("u", [typed("a.X", "p"), typed("b.X", "p")]))
    turned = record(("u", [typed("b.X", "p"), typed("a.X", "p")]))
    held = combined(first).columns

    schema = combine([WriterSchema(2, turned)], held)

    assert not schema.incompatible
    assert set(kinds(schema)["u"][7:-1].split(",")) == {"x:struct<p:int>", "b_x:struct<p:int>"}
    members = [member["name"] for member in schema.readings[0].writer["fields"][0]["type"]]
    assert members == ["b_x", "x"]


def test_a_table_names_the_members_inside_of_what_it_holds() -> None:
    def around(*branches: Any) -> dict[str, Any]:
        union = {"type": "map", "values": record(("u", list(branches)), name="In")}
        return record(("m", {"type": "array", "items": union}))

    first = around(typed("a.X", "p"), typed("b.X", "p"))
    held = combined(first).columns
    schema = combine([WriterSchema(2, around(typed("b.X", "p"), typed("a.X", "p")))], held)

    assert not schema.incompatible
    assert "b_x:struct<p:int>,x:struct<p:int>" in kinds(schema)["m"]


def test_a_namespace_that_changes_makes_no_other_members() -> None:
    old = record(("u", [typed("v1.A", "p"), typed("v1.B", "q")]))
    new = record(("u", ["null", typed("v2.B", "q"), typed("v2.A", "p", "r")]))

    schema = combined(old, new)

    assert kinds(schema) == {"u": "struct<a:struct<p:int,r:int>,b:struct<q:int>>"}
    assert read(schema, 2, new, {"u": ("v2.B", {"q": 7})}) == {"u": {"q": 7}}
    assert read(schema, 1, old, {"u": ("v1.A", {"p": 7})}) == {"u": {"p": 7, "r": None}}


def test_namesakes_of_one_writer_have_members_of_their_own() -> None:
    both = record(("u", [typed("v1.A", "p"), typed("v2.A", "q"), "string"]))
    alone = record(("u", [typed("v1.A", "p"), "string"]))

    for order in ([both, alone], [alone, both]):
        schema = combined(*order)
        assert not schema.incompatible
        members = schema.columns["u"].dataType
        assert isinstance(members, StructType)
        assert set(members.names) == {"a", "v2_a", "string"}


def test_a_union_becomes_one_of_its_types() -> None:
    both = record(("u", [typed("a.P", "p"), typed("a.Q", "q")]))
    one = record(("u", typed("a.P", "p")))

    schema = combined(both, one)

    assert not schema.incompatible
    assert read(schema, 2, one, {"u": {"p": 7}}) == {"u": {"p": 7}}
