"""Arrays of captured rows as one text, as Spark makes it of what the macro renders.

Fails when the text has another order, lacks a null, or shows an empty array as none at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.python.render.goldens import GOLDEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RENDERED = (GOLDEN / "array_text.spark.sql").read_text()
TABLE = "bronze.pagila__film"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        ("array('Trailers', 'Deleted Scenes')", "Trailers, Deleted Scenes"),
        ("array('b', null, 'a', 'b', '')", "b, null, a, b, "),
        ("array(null)", "null"),
        ("array()", ""),
        ("null", None),
    ],
)
def test_a_text_has_all_that_the_array_has_in_its_order(
    spark: SparkSession, array: str, text: str | None
) -> None:
    row = f"named_struct('special_features', cast({array} as array<string>))"
    given = f"(select {row} as after)"

    (made,) = spark.sql(RENDERED.replace(TABLE, given)).collect()

    assert made.special_features == text
