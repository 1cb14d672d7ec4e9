"""The jobs of deploy/dbt-platform/jobs.yml as DAGs of Airflow: the same steps at the same times.

A task is a step, and a step is one invocation of dbt: all models of a build read bronze up to one
point, which the first of them finds. A task for each model would give each a point of its own.

Variables of Airflow, each with a default: ``dbt_executable_path`` (``dbt``, of an environment of
its own), ``dbt_target`` (``prod``) and ``dbt_profiles_dir`` (``profiles`` of the checkout).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, chain

PROJECT = Path(__file__).resolve().parents[3]
JOBS = PROJECT / "deploy/dbt-platform/jobs.yml"
# What a step leaves out is not in its task's name.
LEAVES_OUT = "--exclude-resource-type"


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


for _name, _job in yaml.safe_load(JOBS.read_text())["jobs"].items():
    if _job["triggers"]["schedule"]:
        globals()[_name] = dag_of(_name, _job)
