"""The project with each version of dbt that it takes, in an environment of its own.

Fails when one of them, or the parser of dbt v2, finds something wrong or deprecated, or does a
job otherwise.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.python.platform.environments import DBT_VERSIONS, dbt_lock, programs
from tests.python.platform.jobs import ENGINES, Platform, check_production, pull_request
from tests.python.programs import ran
from tests.python.project_copy import copy_checkout

TARGETS = ("thrift", "redshift-standin")
# Of the alpha that parses here: Spark is an adapter that it has to be allowed.
EXPERIMENTAL = {"DBT_ALLOW_EXPERIMENTAL_ADAPTERS": "true"}

pytestmark = pytest.mark.fetches


def parse(program: Path, target: str, clone: Path, *options: str) -> str:
    copy_checkout(clone)
    done = ran(
        [program, *options, "parse", "--target", target, "--profiles-dir", "profiles"],
        cwd=clone,
        env={"PATH": os.environ["PATH"], "HOME": str(clone), **EXPERIMENTAL},
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    return printed


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("version", DBT_VERSIONS)
def test_a_version_of_dbt_finds_nothing_deprecated(
    version: str, target: str, tmp_path: Path
) -> None:
    program = programs(dbt_lock(version)) / "dbt"
    printed = parse(
        program,
        target,
        tmp_path / "clone",
        *("--warn-error", "--show-all-deprecations", "--no-partial-parse"),
    )

    assert "deprecat" not in printed.lower()


@pytest.mark.parametrize("target", TARGETS)
def test_the_parser_of_dbt_v2_finds_nothing_wrong(target: str, tmp_path: Path) -> None:
    program = programs(dbt_lock("1.12")) / "dbt-core-experimental-parser"
    printed = parse(program, target, tmp_path / "clone").lower()

    assert f"finished 'parse' successfully for target '{target}'" in printed
    assert "[warning]" not in printed
    assert "[error]" not in printed


@pytest.mark.parametrize(
    "at_platform",
    [(engine, version) for version in DBT_VERSIONS for engine in ENGINES],
    indirect=True,
    ids="-".join,
)
def test_a_version_of_dbt_does_every_job(at_platform: Platform, tmp_path: Path) -> None:
    check_production(at_platform)
    pull_request(at_platform, tmp_path)
