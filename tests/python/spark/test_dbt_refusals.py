"""What dbt says before it builds anything where it would build the wrong thing.

Fails when dbt builds on another lake than asked for, outside UTC, or without bronze tables.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import PROJECT, Home
from tests.python.conftest import program_environment
from tests.python.programs import ran
from tests.python.spark.bronze_tables import declared_tables
from tests.python.spark.lake_steps import do_steps

NEW_YORK = "America/New_York"
ZONE = "spark.sql.session.timeZone"
TABLES = [table for table, _ in declared_tables(PROJECT)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals")


@pytest.fixture(scope="module")
def said(home: Home, lake: Path) -> dict[str, str]:
    """What dbt said of each surrounding in which it must not run, in one JVM."""
    run = {"dbt": ["run"]}
    found: list[Any] = do_steps(
        lake,
        [
            {**run, "environment": {"SANDBOX_HOME": "/elsewhere/sandbox"}},
            {"sql": f"set {ZONE}={NEW_YORK}"},
            run,
            {"sql": f"set {ZONE}=UTC"},
            *({"sql": f"drop table {table}"} for table in TABLES),
            run,
        ],
    )
    done = {"sandbox": found[0], "zone": found[2], "bronze": found[-1]}
    assert not any(one["success"] for one in done.values())
    return {name: one["said"] for name, one in done.items()}


def test_another_sandbox_than_the_one_asked_for_is_refused(
    said: dict[str, str], lake: Path
) -> None:
    assert (
        "SANDBOX_HOME is /elsewhere/sandbox but Spark opens the lake of "
        f'{lake.resolve() / "sand box"}: run `make install` or eval "$(sandbox env)"'
    ) in said["sandbox"]


def test_a_spark_whose_sessions_are_not_utc_is_refused(said: dict[str, str]) -> None:
    assert f"{ZONE} is {NEW_YORK}: set it to UTC" in said["zone"]


def test_a_lake_without_bronze_says_so_in_one_line(said: dict[str, str]) -> None:
    (line,) = (line for line in said["bronze"].splitlines() if "not found" in line)

    assert (f" and {len(TABLES) - 3} more not found in the lake: run `spark-ingest create`") in line


def test_a_foreign_spark_is_refused_in_one_line_before_it_starts(home: Home) -> None:
    dbt = str(Path(sys.executable).parent / "dbt")
    done = ran(
        [dbt, "--no-use-colors", "run"],
        env={**program_environment(home), "SPARK_HOME": "/opt/spark"},
    )

    assert done.returncode == 2
    assert done.stderr == ""
    *_, line = done.stdout.splitlines()
    assert "SPARK_HOME is /opt/spark, a Spark that is not of this environment" in line
    assert "run `unset SPARK_HOME`" in line
