"""Every job of the dbt platform, and a pull request's build beside production.

Fails when a job does not run as the platform runs it, or a pull request's build is not a full
build's, beside production.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.platform.jobs import ENGINES, Platform, check_production, pull_request

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.parametrize(
        "at_platform", [(engine, None) for engine in ENGINES], indirect=True, ids=ENGINES
    ),
]


def test_production_is_built_tested_and_documented(at_platform: Platform) -> None:
    check_production(at_platform)


def test_a_pull_request_builds_what_it_changes_and_nothing_else(
    at_platform: Platform, tmp_path: Path
) -> None:
    pull_request(at_platform, tmp_path)
