"""The benchmark of publishing, once, with few rows: its figures are of no use.

Fails when `python -m bench.publish` does not run to its end.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from sandbox.settings import PROJECT
from tests.python.conftest import Stack


@pytest.mark.nightly
def test_a_mart_and_its_changes_are_measured(stack: Stack) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.publish", "--rows", "3000"],
        cwd=PROJECT,
        env=stack.env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    first, changes, alone = done.stdout.splitlines()
    assert "3,000 records" in first
    assert "300 records" in changes
    assert "3,300 records" in alone
