"""Start ``lake_program`` on a new lake, and give back what its steps gave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.install import spark_conf
from sandbox.processes import process, programs
from sandbox.settings import PROJECT, Home
from spark_ingest.errors import MillraceError

PROGRAM = Path(__file__).with_name("lake_program.py")
SECONDS = 1100
GRACE_SECONDS = 10.0
_TAIL_BYTES = 12_000


class StepsFailed(MillraceError):
    """The program died; the text ends with what it said last."""


def do_steps(
    folder: Path, steps: list[dict[str, Any]], project: Path = PROJECT
) -> list[Any]:
    """Do steps on a new lake; fail the test when they cannot be done.

    Args:
        folder: Where the lake and all else goes; made here.
        steps: As ``lake_program`` takes them.
        project: The dbt project.

    Returns:
        What each step gave.
    """
    home = Home(folder.resolve() / "sand box")
    settings = spark_conf.render(home, home.spark_conf)
    with settings.open("a") as file:
        file.writelines(
            f"{key} {value}\n" for key, value in spark_conf.FEW_ROWS.items()
        )
    try:
        return run_steps(home, steps, project)
    except StepsFailed as failed:
        pytest.fail(str(failed))


def run_steps(
    home: Home, steps: list[dict[str, Any]], project: Path = PROJECT
) -> list[Any]:
    """Do steps on the lake of a sandbox whose Spark settings are rendered.

    The program, its JVM and whatever it starts end with this call, however it ends.

    Args:
        home: The sandbox; its lake has no tables yet.
        steps: As ``lake_program`` takes them.
        project: The dbt project.

    Returns:
        What each step gave.

    Raises:
        StepsFailed: The program died.
        subprocess.TimeoutExpired: It took longer than ``SECONDS``.
    """
    out = home.path / "out"
    out.mkdir()
    (out / "steps.json").write_text(json.dumps(steps))
    env = programs.environment(home) | {"PYTHONPATH": str(PROJECT)}
    env.pop("SPARK_HOME", None)
    log = out / "said"
    with log.open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, PROGRAM, project, out],
            cwd=PROJECT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        code = running.wait(SECONDS)
    except BaseException:  # Ctrl-C reaches only us: the group is not the terminal's
        process.end_group(running.pid, GRACE_SECONDS)
        running.wait()
        raise
    process.end_left_over(running.pid, GRACE_SECONDS)
    if code != 0:
        last = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
        raise StepsFailed(f"the steps failed with exit code {code}\n{last}")
    results: list[Any] = json.loads((out / "results.json").read_text())
    return results
