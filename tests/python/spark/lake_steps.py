"""Start ``lake_program`` on a lake, and give back what its steps gave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def random_lakes(rounds: int) -> list[tuple[int, int]]:
    """The seed of each random trial, a lake of its own, and its rounds.

    Args:
        rounds: Of a trial; ``ROUNDS=60`` makes more of them, the first with the seed ``SEED``.
    """
    seed = int(os.environ.get("SEED", "1"))
    in_all = int(os.environ.get("ROUNDS", rounds))
    return [
        (seed + number, min(rounds, in_all - before))
        for number, before in enumerate(range(0, in_all, rounds))
    ]


def lakes_for(seconds: int, folder: Path) -> Iterator[tuple[Path, int]]:
    """Folders for new lakes until the time is over, each with its seed."""
    first = int(time.time())
    end, seed = time.monotonic() + seconds, first
    while time.monotonic() < end:
        yield folder / str(seed - first), seed
        seed += 1


def do_steps(folder: Path, steps: list[dict[str, Any]], project: Path = PROJECT) -> list[Any]:
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
        file.writelines(f"{key} {value}\n" for key, value in spark_conf.FEW_ROWS.items())
    try:
        return run_steps(home, steps, project)
    except StepsFailed as failed:
        pytest.fail(str(failed))


def run_steps(home: Home, steps: list[dict[str, Any]], project: Path = PROJECT) -> list[Any]:
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
    out.mkdir(exist_ok=True)
    (out / "steps.json").write_text(json.dumps(steps))
    log = out / "said"
    with log.open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, PROGRAM, project, out],
            cwd=PROJECT,
            env=_environment(home),
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
        raise StepsFailed(f"the steps failed with exit code {code}\n{_last(log)}")
    results: list[Any] = json.loads((out / "results.json").read_text())
    return results


@contextmanager
def at_work(home: Home, project: Path = PROJECT) -> Iterator[Callable[[dict[str, Any]], Any]]:
    """The program on a lake that others write to as well, doing steps as they come.

    It, its JVM and whatever it starts end with the block.

    Args:
        home: The sandbox, its Spark settings rendered.
        project: The dbt project.

    Yields:
        Does one step, and gives what that gave; one at a time.
    """
    out = home.path / "out"
    out.mkdir(exist_ok=True)
    log = out / "said"
    reported, answers = os.pipe()
    with log.open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, PROGRAM, project, out, str(answers)],
            cwd=PROJECT,
            env=_environment(home),
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(answers,),
            text=True,
        )
    os.close(answers)

    def do(step: dict[str, Any]) -> Any:
        assert running.stdin is not None
        running.stdin.write(json.dumps(step) + "\n")
        running.stdin.flush()
        line = results.readline()
        if not line:
            raise StepsFailed(f"the lake's program ended\n{_last(log)}")
        return json.loads(line)

    with os.fdopen(reported) as results:
        try:
            yield do
        finally:
            process.end_group(running.pid, GRACE_SECONDS)
            running.wait()


def _environment(home: Home) -> dict[str, str]:
    env = programs.environment(home) | {"PYTHONPATH": str(PROJECT)}
    env.pop("SPARK_HOME", None)
    return env


def _last(log: Path) -> str:
    return log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
