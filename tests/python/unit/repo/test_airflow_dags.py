"""The DAGs of deploy/airflow, with a stand-in for Airflow: names of tasks, and who is reported."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.request import Request

import pytest

from sandbox.settings import PROJECT
from tests.python.platform.jobs import jobs

DAGS = PROJECT / "deploy/airflow/dags/millrace.py"
FAILED = {"dag_run": SimpleNamespace(dag_id="millrace__hourly", run_id="scheduled__1")}


class Dag:
    """What a DAG is given."""

    def __init__(self, dag_id: str, **given: Any) -> None:
        self.dag_id, self.given = dag_id, given

    def __enter__(self) -> Dag:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


def loaded(
    monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]
) -> tuple[ModuleType, list[str]]:
    """The file of DAGs as Airflow with such variables loads it, and the names of all tasks."""
    tasks: list[str] = []
    sdk, bash = ModuleType("airflow.sdk"), ModuleType("bash")
    vars(sdk).update(
        DAG=Dag,
        Variable=SimpleNamespace(get=lambda name, default: variables.get(name) or default),
        chain=lambda *_: None,
    )
    vars(bash).update(BashOperator=lambda task_id, **_: tasks.append(task_id))
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    for name in ("providers", "providers.standard", "providers.standard.operators"):
        monkeypatch.setitem(sys.modules, f"airflow.{name}", ModuleType(name))
    monkeypatch.setitem(sys.modules, "airflow.providers.standard.operators.bash", bash)
    spec = importlib.util.spec_from_file_location("millrace_dags", DAGS)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, tasks


def test_a_task_is_named_after_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _, tasks = loaded(monkeypatch, {})

    assert tasks == ["build_everyday", "build", "source_freshness", "docs_generate", "test"]


def test_each_scheduled_job_shows_of_a_run_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = loaded(monkeypatch, {})
    dags = [of for of in vars(module).values() if isinstance(of, Dag)]

    scheduled = [job for job in jobs().values() if job.triggers.schedule]
    assert len(dags) == len(scheduled)
    for dag in dags:
        assert dag.given["on_failure_callback"] is module.notify_of_failure
        assert "on_failure_callback" not in dag.given["default_args"]


def test_a_run_that_failed_is_posted_to_the_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[Request] = []
    module, _ = loaded(monkeypatch, {"dbt_webhook_secret": "https://hooks.example/1"})
    monkeypatch.setattr(module, "urlopen", lambda asked, timeout: posted.append(asked))

    module.notify_of_failure(FAILED)

    (asked,) = posted
    assert asked.full_url == "https://hooks.example/1"
    assert asked.get_header("Content-type") == "application/json"
    assert isinstance(asked.data, bytes)
    said = json.loads(asked.data)
    assert said.keys() == {"text"}
    assert "millrace__hourly" in said["text"]
    assert "scheduled__1" in said["text"]


def test_without_a_webhook_nobody_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = loaded(monkeypatch, {})
    monkeypatch.setattr(module, "urlopen", lambda *_, **__: pytest.fail("posted"))

    module.notify_of_failure(FAILED)
