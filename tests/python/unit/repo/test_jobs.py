"""The scheduled jobs: what they name is in the project, and what they run is of the data."""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml

from sandbox.settings import PROJECT
from tests.python.platform.jobs import jobs, steps_of

CRON = PROJECT / "docs/scheduled-jobs.md"
NO_UNIT_TESTS = "--exclude-resource-type unit_test"


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


def builds_and_tests(texts: Iterable[str]) -> list[str]:
    """The commands of dbt that run tests."""
    commands = re.findall(r"\bdbt (?:build|test)\b[^&'\n]*", "\n".join(texts))
    return [command.partition("2>&1")[0] for command in commands]


def test_scheduled_jobs_leave_unit_tests_to_pull_requests() -> None:
    scheduled = {
        name: builds_and_tests(job.execute_steps)
        for name, job in jobs().items()
        if job.triggers.schedule
    }
    cron = re.findall(r"^[\d*].+ dbt_project\.yml .+$", CRON.read_text(), re.MULTILINE)

    assert scheduled.keys() == {"hourly", "nightly", "weekly"}
    assert len(cron) == len(scheduled)
    for commands in (*scheduled.values(), *(builds_and_tests([line]) for line in cron)):
        assert commands
        assert [one for one in commands if NO_UNIT_TESTS not in one] == []
    pushed = jobs()["pull_request"].execute_steps
    assert builds_and_tests(pushed)
    assert not any(NO_UNIT_TESTS in step for step in pushed)


def test_cron_has_the_steps_of_the_jobs() -> None:
    text = CRON.read_text()
    for name, job in jobs().items():
        if job.triggers.schedule:
            assert job.schedule
            (line,) = re.findall(rf"^.+ -t millrace-{name}$", text, re.MULTILINE)
            assert line.startswith(f"{job.schedule.cron} ")
            assert re.findall(r"\.venv/bin/(dbt .+?) --target prod", line) == steps_of(job)


def test_jobs_set_variables_that_the_project_reads() -> None:
    text = (PROJECT / "dbt_project.yml").read_text()
    named = {at.name for job in jobs().values() for at in job.custom_environment_variables}

    assert named
    assert named <= set(re.findall(r"env_var\('(DBT_\w+)'", text))
