"""A Spark cluster with S3 and Glue, from the packed application to a mart, typed from its page.

Fails when a command of docs/your-cluster.md fails, or an executor or a Thrift server is missed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import __version__

from spark_ingest.lake.preflight import pyspark_folder
from tests.python.cluster_page import follow_the_page, lose_an_executor, lose_the_thrift_server
from tests.python.walks import Newcomer, newcomer_in

pytestmark = [pytest.mark.nightly, pytest.mark.aws]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    with newcomer_in(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def test_the_page_leads_from_a_cluster_to_a_mart(newcomer: Newcomer) -> None:
    follow_the_page(newcomer, __version__, pyspark_folder())


def test_an_executor_that_dies_costs_no_record_and_the_marts_grow(newcomer: Newcomer) -> None:
    lose_an_executor(newcomer, pyspark_folder())


def test_a_build_goes_on_with_a_new_thrift_server(newcomer: Newcomer) -> None:
    lose_the_thrift_server(newcomer, pyspark_folder())
