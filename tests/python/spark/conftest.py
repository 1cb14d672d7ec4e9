"""Lakes of two catalogs beside the session's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.python.spark.lakes import Lake, jdbc_lake, rest_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def jdbc(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return jdbc_lake(spark, tmp_path_factory.mktemp("jdbc"))


@pytest.fixture(scope="module")
def rest(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with rest_lake(spark, tmp_path_factory.mktemp("rest")) as made:
        yield made
