"""The scheduled jobs: what they name is in the project."""

from __future__ import annotations

import re

import yaml

from sandbox.settings import PROJECT
from tests.python.platform.jobs import jobs


def test_only_jobs_of_production_write_to_its_schemas() -> None:
    project = yaml.safe_load((PROJECT / "dbt_project.yml").read_text())
    bare = set(project["vars"]["bare_schema_targets"])

    assert {name: job.settings.target_name in bare for name, job in jobs().items()} == {
        "hourly": True,
        "nightly": True,
        "weekly": True,
        "pull_request": False,
    }


def test_jobs_name_selectors_that_there_are() -> None:
    selectors = yaml.safe_load((PROJECT / "selectors.yml").read_text())["selectors"]
    steps = " ".join(step for job in jobs().values() for step in job.execute_steps)

    named = set(re.findall(r"--selector (\S+)", steps))
    assert named
    assert named <= {selector["name"] for selector in selectors}


def test_jobs_set_variables_that_the_project_reads() -> None:
    text = (PROJECT / "dbt_project.yml").read_text()
    named = {
        at.name for job in jobs().values() for at in job.custom_environment_variables
    }

    assert named
    assert named <= set(re.findall(r"env_var\('(DBT_\w+)'", text))
