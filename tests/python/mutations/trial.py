"""Tests run in a copy of the checkout, and what became of each."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from tests.python.mutations.planting import Mechanism, taken_out
from tests.python.programs import ran

# A mutant may wait for what never comes.
_SECONDS = 600
# Fixtures stop their services.
_END_SECONDS = 120
_MARK = "MILLRACE_MECHANISMS"
_PACKAGES = ("spark_ingest", "sandbox", "dbt_millrace", "tests.python.conftest")
# How pytest shows a test that found something wrong from one that could not do its work.
_ASSERTIONS = ("AssertionError", "assert ", "Failed: ")


class Outcome(StrEnum):
    """What became of a mechanism's test while the mechanism was taken out.

    Attributes:
        CAUGHT: It failed by an assertion.
        SURVIVED: It passed.
        BROKEN: Neither: it could not be run, or did not end, or fails as it is.
    """

    CAUGHT = "caught"
    SURVIVED = "survived"
    BROKEN = "broken"


@dataclass(frozen=True)
class Trial:
    """A mechanism taken out, and what its test said.

    Attributes:
        why: The first line of what the test said.
        seconds: What it took, with its services.
    """

    mechanism: Mechanism
    outcome: Outcome
    why: str
    seconds: float


@dataclass(frozen=True)
class Said:
    """What pytest says of one test: "passed", "failed", "error" or "skipped", and why."""

    outcome: str
    why: str = ""


class Copy:
    """A copy of the checkout whose code is what runs in it, in this virtual environment."""

    def __init__(self, project: Path, folder: Path) -> None:
        """Bind the copy.

        Args:
            project: The copy.
            folder: For what the runs write.

        Raises:
            RuntimeError: Python would import the code of another checkout there.
        """
        self._project, self._folder = project, folder
        self._mark = secrets.token_hex(8)
        # The environment has an editable install of the checkout, which this goes before.
        # Two texts of one length, written within a second, would share their byte code.
        self._env = {
            **os.environ,
            "PYTHONPATH": str(project),
            "PYTHONDONTWRITEBYTECODE": "1",
            _MARK: self._mark,
        }
        self._require_own_code()

    def trial(self, mechanism: Mechanism) -> Trial:
        """Take a mechanism out, and run its test."""
        began = time.monotonic()
        with taken_out(mechanism, self._project):
            said = self.run([mechanism.node_id]).get(mechanism.node_id)
        seconds = time.monotonic() - began
        return Trial(mechanism, *outcome_of(said), seconds)

    def run(self, tests: Sequence[str]) -> dict[str, Said]:
        """Run tests in one pytest; what it says of each that it came to."""
        report = self._folder / "report.xml"
        report.unlink(missing_ok=True)
        log = self._folder / "pytest.log"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--basetemp={self._folder / 'temporary'}", f"--junitxml={report}"]
        with log.open("wb") as output:
            running = subprocess.Popen(
                [*command, *tests],
                cwd=self._project,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for this program; it lets pytest stop its services.
                start_new_session=True,
            )
            try:
                running.wait(_SECONDS * max(1, len(tests) // 4))
            except subprocess.TimeoutExpired:
                pass
            finally:
                self._end(running)
        if not report.exists():
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            return {test: Said("error", "".join(last) or "no end") for test in tests}
        return read_report(report, tests)

    def _end(self, running: subprocess.Popen[bytes]) -> None:
        """Let pytest end, and end what it leaves."""
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                running.wait(_END_SECONDS)
        # A JVM takes some seconds to see that its Python has ended.
        for process in psutil.wait_procs(self._left(), timeout=10)[1]:
            with suppress(psutil.Error):
                process.kill()
        running.wait()

    def _left(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self._mark:
                    found.append(process)
            except psutil.Error:
                # Another person's process, or one that ended while we looked.
                continue
        return found

    def _require_own_code(self) -> None:
        names = ", ".join(repr(name) for name in _PACKAGES)
        program = (
            "import importlib\n"
            f"for name in ({names}): print(importlib.import_module(name).__file__)"
        )
        # Elsewhere than in the copy: as programs do that a test starts.
        done = ran(
            [sys.executable, "-P", "-c", program], cwd=self._folder, env=self._env, check=True
        )
        for file in done.stdout.split("\n")[:-1]:
            if not Path(file).is_relative_to(self._project):
                raise RuntimeError(f"{file} would run, and not what is in the copy")


def outcome_of(said: Said | None) -> tuple[Outcome, str]:
    """What a test's outcome means for the mechanism that was taken out."""
    if said is None:
        return Outcome.BROKEN, "pytest did not come to it"
    if said.outcome == "passed":
        return Outcome.SURVIVED, ""
    by_assertion = said.outcome == "failed" and said.why.startswith(_ASSERTIONS)
    return Outcome.CAUGHT if by_assertion else Outcome.BROKEN, said.why


def read_report(report: Path, tests: Sequence[str]) -> dict[str, Said]:
    """What a JUnit report says of tests, by node id.

    A test that is named without parameters is all that it is run with, and the first of these
    that did not pass shows what it says.
    """
    found: dict[str, Said] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        said = _said(case)
        file = case.get("classname", "").replace(".", "/")
        whole = f"{file}.py::{case.get('name', '')}"
        for test in tests:
            is_it = test in (whole, whole.partition("[")[0])
            if is_it and found.get(test, Said("passed")).outcome == "passed":
                found[test] = said
    return found


def _said(case: ET.Element) -> Said:
    for tag, outcome in (("error", "error"), ("failure", "failed"), ("skipped", "skipped")):
        element = case.find(tag)
        if element is not None:
            lines = element.get("message", "").splitlines()
            return Said(outcome, lines[0] if lines else "")
    return Said("passed")
