"""Histories of random logs, held against the rules on Spark and on the Redshift emulator.

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
    COMMITS,
    HISTORIES,
    RULED,
    Case,
    Engine,
    OnSpark,
    OnStandin,
    Row,
    built_on,
    cases,
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
# By case, its history after each commit.
Made = Mapping[str, Sequence[Sequence[Row]]]


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
def built(engines: Engines) -> Mapping[str, Made]:
    """By engine."""
    return {name: built_on(engine, CASES) for name, engine in engines.items()}


@pytest.fixture(scope="module")
def built_by_duckdb() -> Made:
    """Each as a full build makes it."""
    commits = range(1, COMMITS + 1)
    return {str(case): [on_duckdb(case, end) for end in commits] for case in CASES}


def cells(rows: Sequence[Row], end: int = len(COLUMNS)) -> list[tuple[str, ...]]:
    """The first columns of rows as texts, in an order of their own."""
    return sorted(tuple(map(_text, row[:end])) for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        # As an engine writes it: without the zeros at the end of its fraction.
        return value.isoformat(" ").rstrip("0") if value.microsecond else str(value)
    return "null" if value is None else str(value)


def by_rules(case: Case, commits: int) -> list[Row]:
    """What a history must hold, with ``COLUMNS`` up to the last that the rules decide."""
    has_two = len(case.options.key_types) > 1
    changes = [change for change in case.changes if change.commit_id <= commits]
    rows = expected(versions(changes, case.options), case.options)
    return [row if has_two else (row[0], None, *row[1:]) for row in rows]


@pytest.mark.parametrize("commits", range(1, COMMITS + 1))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_build_and_an_increment_make_what_the_rules_say(
    built: Mapping[str, Made], built_by_duckdb: Made, case: Case, engine: str, commits: int
) -> None:
    made = built[engine][str(case)][commits - 1]

    assert cells(made, RULED) == cells(by_rules(case, commits))
    assert cells(made) == cells(built_by_duckdb[str(case)][commits - 1])
