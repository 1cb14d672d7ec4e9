"""What `make parity` calls a difference, and what it does not."""

from __future__ import annotations

import pytest

from tests.python.parity.compare import compare
from tests.python.parity.relations import (
    Cell,
    Column,
    Relation,
    from_spark,
    redshift_type,
    spark_type,
)


def relation(*rows: tuple[Cell, ...], length: str = "") -> Relation:
    columns = (Column("sale_id", "integer"), Column("city", f"varchar{length}"))
    return Relation(columns, rows)


def reported(spark: Relation, standin: Relation, **contract: str) -> list[str]:
    return [str(found) for found in compare(spark, standin, ["sale_id"], contract or None)]


def there(*rows: tuple[Cell, ...]) -> Relation:
    return relation(*rows, length="(256)")


def test_the_same_rows_in_another_order_are_equal() -> None:
    assert reported(relation(("1", "a"), ("2", None)), there(("2", None), ("1", "a"))) == []


@pytest.mark.parametrize(
    ("here", "other"), [("a", "b"), ("a", "a "), ("", None), (None, "None"), ("ü", "u"), ("a", "A")]
)
def test_a_cell_that_differs_is_reported_with_its_key(here: Cell, other: Cell) -> None:
    (found,) = reported(relation(("1", here), ("2", "c")), there(("1", other), ("2", "c")))

    assert found.startswith("'1', city: ")


def test_a_row_on_one_engine_alone_is_a_difference() -> None:
    both, one = [("1", "a"), ("2", "b")], [("1", "a")]

    assert reported(relation(*both), there(*one)) == ["'2': a row on Spark, no row on the emulator"]
    assert reported(relation(*one), there(*both)) == ["'2': no row on Spark, a row on the emulator"]


def test_a_key_that_is_there_twice_hides_no_row() -> None:
    assert reported(relation(("1", "a"), ("1", "a")), there(("1", "a"))) == [
        "'1': a row on Spark, no row on the emulator"
    ]
    assert reported(relation(("1", "a"), ("1", "b")), there(("1", "b"), ("1", "a"))) == []


def test_a_relation_that_one_engine_lacks_is_a_difference() -> None:
    (found,) = compare(relation(), None)

    assert str(found) == ": a relation on Spark, none on the emulator"


def test_columns_in_another_order_are_a_difference() -> None:
    turned = Relation(tuple(reversed(there().columns)), ())

    (found,) = reported(relation(), turned)

    assert found == "columns: sale_id, city on Spark, city, sale_id on the emulator"


def test_a_type_that_differs_is_a_difference() -> None:
    wide = Relation((Column("sale_id", "bigint"), there().columns[1]), ())

    assert reported(relation(), wide) == ["sale_id: integer on Spark, bigint on the emulator"]


def test_without_types_values_still_differ() -> None:
    spark = relation(("1", "Lyon"))
    there = Relation((Column("sale_id", "numeric"), Column("city", "text")), spark.rows)
    other = Relation(there.columns, (("1", "Lyon "),))

    assert compare(spark, there, ["sale_id"], compares_types=False) == []
    (found,) = compare(spark, other, ["sale_id"], compares_types=False)
    assert str(found) == "'1', city: 'Lyon' on Spark, 'Lyon ' on the emulator"


def test_a_length_must_be_that_of_the_contract() -> None:
    assert reported(relation(), there(), city="varchar(256)") == []
    (found,) = reported(relation(), there(), city="varchar(64)")
    assert "the contract says varchar(64)" in found


def test_a_text_without_a_length_is_a_difference() -> None:
    assert reported(relation(), relation()) == [
        "city: varchar on Spark, varchar of no length on the emulator"
    ]


def test_both_engines_types_have_one_name() -> None:
    assert spark_type("decimal(18,2)") == redshift_type("numeric(18,2)")
    assert redshift_type("character varying(16)") == "varchar(16)"
    assert redshift_type("timestamp without time zone") == spark_type("timestamp")
    assert redshift_type("timestamp with time zone") == "timestamp with time zone"
    assert redshift_type("numeric") == "numeric"
    assert redshift_type("text") == "text"
    assert spark_type("int") == redshift_type("integer")
    assert spark_type("bigint") != redshift_type("integer")


def test_numbers_of_spark_have_no_exponent() -> None:
    found = from_spark(
        {"columns": [["amount", "decimal(18,8)"]], "rows": [["0E-8"], [None]], "identity": ""}
    )

    assert found.rows == (("0.00000000",), (None,))
