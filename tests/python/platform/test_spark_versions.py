"""Ingest and dbt on a cluster with the older Spark that Millrace takes.

Fails when a command of docs/your-cluster.md fails on Spark 4.0, or an executor that dies costs a
record there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.cluster_page import follow_the_page, lose_an_executor
from tests.python.platform.environments import LOCKS, programs
from tests.python.walks import newcomer_in

pytestmark = [pytest.mark.fetches, pytest.mark.aws]


def test_the_page_of_a_cluster_holds_on_spark_4_0(tmp_path: Path) -> None:
    folder = programs((LOCKS / "spark-4.0.lock").read_text()).parent
    (spark,) = folder.glob("lib/python*/site-packages/pyspark")
    with newcomer_in(tmp_path) as newcomer:
        follow_the_page(newcomer, "4.0.1", spark)
        lose_an_executor(newcomer, spark)
