"""The rules of the dbt project can fail: `mutations.yml` breaks each once, and must say so.

Fails when a rule of dbt-bouncer or sqlfluff does not find its breach.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest
from sqlfluff.core import FluffConfig, Linter

from sandbox.settings import PROJECT
from tests.python.mutations.planting import entries, plant_all
from tests.python.programs import ran
from tests.python.project_copy import copy_project

BIN = Path(sys.executable).parent


def failed_checks(project: Path) -> set[str]:
    """Parse a project and give the checks of dbt-bouncer that it does not pass."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DBT_")}

    def typed(command: str) -> subprocess.CompletedProcess[str]:
        return ran(
            [f"{BIN}/{word}" if word.startswith("dbt") else word for word in command.split()],
            cwd=project,
            env=environment,
        )

    parsed = typed("dbt --quiet parse --target lint --profiles-dir profiles")
    assert parsed.returncode == 0, parsed.stdout + parsed.stderr
    checked = typed("dbt-bouncer run --output-file failed.json --output-only-failures")
    failed = json.loads((project / "failed.json").read_text())
    names = {re.split(r"[:.]", run["check_run_id"])[0] for run in failed}
    assert (checked.returncode == 0) is (not names), checked.stdout + checked.stderr
    return names


def test_every_rule_that_is_broken_is_found(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    plant_all(project, "bouncer")

    found = failed_checks(project)

    expected = {check for one in entries("bouncer") for check in one["test"]}
    assert expected - found == set()


@pytest.mark.parametrize("one", entries("sqlfluff"), ids=itemgetter("test"))
def test_sql_out_of_style_is_found(one: dict[str, str]) -> None:
    config = FluffConfig.from_path(str(PROJECT), overrides={"templater": "raw"})

    linted = Linter(config=config).lint_string(one["new"] + "\n")

    assert one["test"] in {violation.rule_code() for violation in linted.get_violations()}
