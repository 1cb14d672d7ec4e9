"""The jobs of deploy/dbt-platform/jobs.yml as DAGs of Airflow: the same steps at the same times.

A task is a step, and a step is one invocation of dbt: all models of a build read bronze up to one
point, which the first of them finds. A task for each model would give each a point of its own.

Variables of Airflow, each with a default: ``dbt_executable_path`` (``dbt``, of an environment of
its own), ``dbt_target`` (``prod``), ``dbt_profiles_dir`` (``profiles`` of the checkout) and
``dbt_webhook_secret`` (none: nobody is reported of a run that failed).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Variable, chain

PROJECT = Path(__file__).resolve().parents[3]
JOBS = PROJECT / "deploy/dbt-platform/jobs.yml"
# What a step leaves out is not in its task's name.
LEAVES_OUT = "--exclude-resource-type"
WEBHOOK = "dbt_webhook_secret"
"""The variable with the https URL that is reported of failures: Airflow masks a secret's value."""


def dag_of(name: str, job: dict[str, Any]) -> DAG:
    """One job: its steps in their order, each after the one before it succeeded."""
    with DAG(
        f"millrace__{name}",
        description=" ".join(job["description"].split()),
        schedule=job["schedule"]["cron"],
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        # What a run missed is in bronze: the next one reads it.
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(seconds=job["execution"]["timeout_seconds"]),
        # Of the run, not of its tasks: once, after the last retry and for a timeout, too.
        on_failure_callback=notify_of_failure,
        tags=["millrace", "dbt"],
        default_args={
            "owner": "data-operations",
            # A build goes on where an earlier one failed.
            "retries": 1,
            "retry_delay": timedelta(minutes=5),
        },
    ) as made:
        steps = [*job["execute_steps"]]
        if job["generate_docs"]:
            steps.append("dbt docs generate")
        chain(*map(task_of, steps))
    return made


def task_of(step: str) -> BashOperator:
    """One step, typed in the checkout."""
    words = step.split()[1:]
    named = words[: words.index(LEAVES_OUT)] if LEAVES_OUT in words else words
    return BashOperator(
        task_id="_".join(word for word in named if word[0] != "-"),
        bash_command=f'"$DBT" {" ".join(words)} --target "$TARGET"',
        cwd=str(PROJECT),
        append_env=True,
        env={
            "DBT": "{{ var.value.get('dbt_executable_path', 'dbt') }}",
            "TARGET": "{{ var.value.get('dbt_target', 'prod') }}",
            "DBT_PROFILES_DIR": (
                f"{{{{ var.value.get('dbt_profiles_dir', '{PROJECT}/profiles') }}}}"
            ),
        },
    )


def notify_of_failure(context: Mapping[str, Any]) -> None:
    """Post which run failed, as Slack, Mattermost and Teams read it, to whom the variable names."""
    address = Variable.get(WEBHOOK, default="").removeprefix("https://")
    if address:
        run = context["dag_run"]
        text = f"{run.dag_id} failed: {run.run_id}. The log of its last task says why."
        body = json.dumps({"text": text}).encode()
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"https://{address}", body, headers), timeout=10)


for _name, _job in yaml.safe_load(JOBS.read_text())["jobs"].items():
    if _job["triggers"]["schedule"]:
        globals()[_name] = dag_of(_name, _job)
