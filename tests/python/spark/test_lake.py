"""The rendered configuration opens the lake it names.

Fails when Spark opens another lake than the one that its configuration names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sandbox.settings import Home


def test_a_table_of_the_lake_lies_in_the_home_though_its_path_has_a_blank(
    spark: SparkSession, home: Home
) -> None:
    spark.sql("create namespace if not exists conf_check")
    spark.sql("create table conf_check.numbers (n int)")

    spark.sql("insert into conf_check.numbers values (1), (2)")

    assert spark.table("conf_check.numbers").count() == 2
    assert " " in str(home.path)
    assert list((home.lake / "warehouse/conf_check/numbers/data").glob("*.parquet"))
    spark.sql("drop table conf_check.numbers purge")
