"""The walks of CONTRIBUTING.md, typed from its text by somebody who has nothing but a copy.

Fails when a step of CONTRIBUTING.md fails as it is written.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.settings import PROJECT
from tests.python.walks import Newcomer, newcomer_in

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    with newcomer_in(tmp_path_factory.mktemp("newcomer")) as found:
        yield found


def test_the_walks_work_as_they_are_written(newcomer: Newcomer) -> None:
    before = subprocess.check_output(["git", "status", "--porcelain"], cwd=PROJECT)

    stream = newcomer.follow("Add a stream")
    mart = newcomer.follow("Add a mart")

    assert newcomer.number("select count(*) from bronze.pagila__refunds") == 1_000
    assert newcomer.number("select count(*) from staging.stg_pagila__refunds") == 1_000
    paid = newcomer.number("select sum(order_count) from marts.rpt_customer_sales")
    assert paid == newcomer.number("select count(*) from marts.fct_rental_sales") > 0
    # What a walk adds is what it says that it takes, and passes the checks of the house.
    assert [Path(path).name for path in stream] == [
        "_pagila__sources.yml",
        "refunds-value.avsc",
        "refunds-key.avsc",
        "refunds.py",
        "stg_pagila__refunds.sql",
        "stg_pagila__refunds.yml",
    ]
    assert [Path(path).name for path in mart] == [
        "rpt_customer_sales.sql",
        "rpt_customer_sales.yml",
    ]
    added = [*stream, *mart]
    python, sql, yaml = (
        " ".join(path for path in added if path.endswith(suffix))
        for suffix in (".py", ".sql", ".yml")
    )
    newcomer.type(f"ruff check {python} && ruff format --check {python}")
    newcomer.type(f"mypy {python}")
    newcomer.type(f"yamllint --strict {yaml}")
    newcomer.type("dbt --quiet --warn-error parse --no-partial-parse && dbt-bouncer")
    newcomer.type(f"sqlfluff lint {sql}")
    newcomer.type("pytest -q tests/python/unit/dbt tests/python/unit/repo/test_domain_pages.py")
    newcomer.type("pytest -q tests/python/unit/sandbox/test_streams.py")
    now = subprocess.check_output(["git", "status", "--porcelain"], cwd=PROJECT)
    assert now == before
