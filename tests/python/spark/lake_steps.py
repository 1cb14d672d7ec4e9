"""Start ``lake_program`` on a new lake, and give back what its steps gave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox import spark_conf
from sandbox.settings import PROJECT, Home

PROGRAM = Path(__file__).with_name("lake_program.py")
SECONDS = 1100


def do_steps(
    folder: Path, steps: list[dict[str, Any]], project: Path = PROJECT
) -> list[Any]:
    """Do steps on a new lake.

    Args:
        folder: Where the lake and all else goes; made here.
        steps: As ``lake_program`` takes them.
        project: The dbt project.

    Returns:
        What each step gave.
    """
    home = Home(folder.resolve() / "sand box")
    spark_conf.render(home, home.spark_conf)
    out = home.path / "out"
    out.mkdir()
    (out / "steps.json").write_text(json.dumps(steps))
    kept = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        [sys.executable, PROGRAM, project, out],
        cwd=PROJECT,
        env={**kept, **home.environment(), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"the steps failed\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}")
    results: list[Any] = json.loads((out / "results.json").read_text())
    return results
