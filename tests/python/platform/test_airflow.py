"""The jobs as DAGs of a real Airflow, and one of them run on the sandbox.

Fails when Airflow cannot import a DAG, or when one does not do what its job does.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import PROJECT
from tests.python.conftest import PROGRAM_SECONDS, bring_spark, make_home, program_environment
from tests.python.platform.environments import AIRFLOW, programs
from tests.python.platform.jobs import jobs, steps_of
from tests.python.programs import ran
from tests.python.spark.lake_steps import run_steps
from tests.python.world.records import DAYS, Records

DAGS = PROJECT / "deploy/airflow/dags"
READER = Path(__file__).with_name("airflow_dags.py")

pytestmark = pytest.mark.fetches


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of Airflow's programs, which write to a folder of their own."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }


def run(program: str, *words: str, environment: dict[str, str]) -> str:
    done = ran(
        [programs(AIRFLOW.read_text()) / program, *words], env=environment, timeout=PROGRAM_SECONDS
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def dags(environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    """By name, what Airflow reads of each."""
    printed = run("python", str(READER), str(DAGS), environment=environment)
    found = json.loads(printed.splitlines()[-1])
    assert found["errors"] == {}
    return {dag["id"]: dag for dag in found["dags"]}


def test_each_scheduled_job_is_a_dag_with_its_steps(dags: dict[str, dict[str, Any]]) -> None:
    scheduled = {name: job for name, job in jobs().items() if job.triggers.schedule}

    assert set(dags) == {f"millrace__{name}" for name in scheduled}
    for name, job in scheduled.items():
        dag = dags[f"millrace__{name}"]
        steps = steps_of(job)
        assert dag["schedule"] == job.schedule.cron if job.schedule else None
        assert [task["command"] for task in dag["tasks"]] == [
            step.replace("dbt", '"$DBT"', 1) + ' --target "$TARGET"' for step in steps
        ]
        assert [len(task["after"]) for task in dag["tasks"]] == [
            int(at > 0) for at in range(len(steps))
        ]
        assert dag["seconds"] == job.execution.timeout_seconds


def test_each_dag_keeps_the_rules_of_the_house(dags: dict[str, dict[str, Any]]) -> None:
    for dag in dags.values():
        assert {"millrace", "dbt"} <= set(dag["tags"])
        assert len(dag["description"]) > 15
        assert dag["shows"] == ["notify_of_failure"]
        for task in dag["tasks"]:
            assert len(task["owner"]) > 5
            assert task["owner"] != "airflow"
            assert task["retries"] <= 3
            assert task["email"] is None


def test_a_dag_does_what_its_job_does(environment: dict[str, str], tmp_path: Path) -> None:
    home = make_home(tmp_path / "sand box")
    bring_spark(home)
    rows = Records(seed=3).some(5, DAYS, newest=9)["bronze.pagila__sales"]
    run_steps(home, [{"commit": "bronze.pagila__sales", "rows": rows}])

    run("airflow", "db", "migrate", environment=environment)
    printed = run(
        *("airflow", "dags", "test", "millrace__nightly"),
        environment={
            **program_environment(home),
            **environment,
            "AIRFLOW_VAR_DBT_EXECUTABLE_PATH": str(Path(sys.executable).with_name("dbt")),
            "AIRFLOW_VAR_DBT_TARGET": "sandbox",
            "DBT_TARGET_PATH": str(tmp_path / "target"),
        },
    )

    assert "state=success" in printed
    catalog = json.loads((tmp_path / "target/catalog.json").read_text())
    assert "model.millrace.fct_rental_sales" in catalog["nodes"]
