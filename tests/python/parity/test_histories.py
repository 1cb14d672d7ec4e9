"""Histories of random logs, held against the rules on Spark and on the Redshift stand-in.

Fails when an engine makes another history of a random log than the rules of decision 0012 say,
or than another engine makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.services import stack as services
from sandbox.settings import Home
from tests.python.histories.rules import versions
from tests.python.histories.test_histories import expected
from tests.python.parity.histories import (
    BRONZE,
    COLUMNS,
    HISTORIES,
    RULED,
    Case,
    Engine,
    OnSpark,
    OnStandin,
    Row,
    cases,
    full_builds,
    increment_on,
    on_duckdb,
    stage,
)
from tests.python.parity.relations import connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.all_models

CASES = cases(int(os.environ.get("SEED", "1")))
ENGINES = ("spark", "redshift")
Engines = Mapping[str, Engine]
Made = Mapping[str, Sequence[Row]]


@pytest.fixture(scope="module")
def engines(home: Home, spark: SparkSession) -> Iterator[Engines]:
    """Both engines, with the records of all cases in bronze."""
    on_spark = OnSpark(spark)
    on_spark.write(CASES)
    try:
        services.up(home, ["redshift"])
        port = home.ports["redshift"]
        with connected(port) as connection:
            connection.autocommit = True
            OnStandin(connection).ask(
                f"create external schema {BRONZE} from data catalog"
                f" database '{BRONZE}' iam_role default"
            )
        # What the lake holds is listed at each new connection.
        with connected(port) as connection:
            connection.autocommit = True
            on_standin = OnStandin(connection)
            on_standin.ask(f"create schema {HISTORIES}")
            for engine in (on_spark, on_standin):
                stage(engine, CASES)
            yield {"spark": on_spark, "redshift": on_standin}
    finally:
        services.down(home, ["redshift"])


@pytest.fixture(scope="module")
def made_by_spark(engines: Engines) -> Made:
    return full_builds(engines["spark"], CASES)


@pytest.fixture(scope="module")
def made_by_redshift(engines: Engines) -> Made:
    return full_builds(engines["redshift"], CASES)


@pytest.fixture(scope="module")
def made_by_duckdb() -> Made:
    return {str(case): on_duckdb(case) for case in CASES}


def cells(rows: Sequence[Row], end: int = len(COLUMNS)) -> list[tuple[str, ...]]:
    """The first columns of rows as texts, in an order of their own."""
    return sorted(tuple(map(_text, row[:end])) for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        # As an engine writes it: without the zeros at the end of its fraction.
        return value.isoformat(" ").rstrip("0") if value.microsecond else str(value)
    return "null" if value is None else str(value)


def by_rules(case: Case) -> list[Row]:
    """What a history must hold, with ``COLUMNS`` up to the last that the rules decide."""
    has_two = len(case.options.key_types) > 1
    rows = expected(versions(case.changes, case.options), case.options)
    return [row if has_two else (row[0], None, *row[1:]) for row in rows]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_full_build_is_what_the_rules_say(
    request: pytest.FixtureRequest, made_by_duckdb: Made, case: Case, engine: str
) -> None:
    made = request.getfixturevalue(f"made_by_{engine}")[str(case)]

    assert cells(made, RULED) == cells(by_rules(case))
    assert cells(made) == cells(made_by_duckdb[str(case)])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_increment_makes_what_a_full_build_makes(
    engines: Engines, made_by_duckdb: Made, case: Case, engine: str
) -> None:
    grown = increment_on(engines[engine], case)

    assert cells(grown) == cells(made_by_duckdb[str(case)])
