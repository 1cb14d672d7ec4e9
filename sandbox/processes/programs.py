"""Console programs of this environment, run by the demo and by `sandbox live`.

Each runs in a process group of its own, so that Ctrl-C reaches only the one that started
it and that one decides how the others end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from sandbox.processes import process
from sandbox.settings import PROJECT, Home
from spark_ingest.errors import MillraceError

_STOP_SECONDS = 20.0
_TAIL_LINES = 20
_TAIL_BYTES = 64_000


class ProgramFailed(MillraceError):
    """A program exited with an error; the text says where its log is."""


class Running:
    """A program in the background, its output in a log from the log's beginning.

    Args:
        command: The program as :func:`path_of` names it, and its arguments.
        lock: A file descriptor that it shall inherit: a lock that it then holds as well.
    """

    def __init__(self, name: str, command: list[str], home: Home, log: Path, lock: int) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = _start(command, environment(home), output, (lock,))
        self._read = 0

    def messages(self) -> list[dict[str, Any]]:
        """The JSON objects that it has printed since they were asked for last."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            added = log.read()
        # What follows the last line break is not a whole line yet.
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        return json_lines(whole.decode(errors="replace"))

    def check(self) -> None:
        """Complain when it has ended.

        Raises:
            ProgramFailed: One line: which, how, its last line, its log.
        """
        code = self._process.poll()
        if code is not None:
            raise ProgramFailed(
                f"{self.name} ended with exit code {code}: {self._last_line()};"
                f" its log is {self.log}"
            )

    def ask_to_end(self, number: signal.Signals) -> None:
        """Send the signal at which it ends by itself, unless it has ended."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def end(self, grace: float) -> int | None:
        """Wait until it has ended, then end what is left of its group.

        Returns its exit code; None when it had to be ended by force, after ``grace`` seconds.
        """
        try:
            code = self._process.wait(grace)
        except subprocess.TimeoutExpired:
            process.end_group(self._process.pid, 0)
            self._process.wait()
            return None
        # A JVM lives a little longer than its Python.
        process.end_left_over(self._process.pid, _STOP_SECONDS)
        return code

    def _last_line(self) -> str:
        lines = [
            line
            for line in self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").splitlines()
            if line.strip() and not line.startswith("{")
        ]
        return " ".join(lines[-1].split()) if lines else "it said nothing"


class Dialogue:
    """A program beside us that is told what comes next, and says when it is done.

    Each line on its standard input and output is a JSON object; all else that it prints goes to
    its log. As a context it is left when the program has ended: in peace by the end of its
    standard input, else by force.

    Args:
        lock: A file descriptor that it shall inherit: a lock that it then holds as well.
        settings: Variables of its environment besides, unless they are set already.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        home: Home,
        log: Path,
        lock: int,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=PROJECT,
                env={**(settings or {}), **environment(home)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                pass_fds=(lock,),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                self._wait()
        finally:
            if self._process.returncode is None:
                process.end_group(self._process.pid, _STOP_SECONDS)
                self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    # What it was not told any more has nobody to read it.
                    with suppress(BrokenPipeError):
                        pipe.close()

    def send(self, **facts: Any) -> None:
        """Say something, unless it has ended: that shows when it is listened to."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(f"{json.dumps(facts)}\n".encode())
                self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """What it says next.

        Raises:
            ProgramFailed: It ended instead; the message ends with what it printed last.
        """
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line.endswith(b"\n"):
            raise failed(self.name, self._process.wait(), self.log)
        heard: dict[str, Any] = json.loads(line)
        return heard

    def _wait(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        code = self._process.wait()
        process.end_left_over(self._process.pid, _STOP_SECONDS)
        if code != 0:
            raise failed(self.name, code, self.log)


def run_to_end(
    home: Home, log: Path, *command: str, settings: Mapping[str, str] | None = None
) -> str:
    """Run a console program; return its standard output and error.

    ``settings`` are variables of its environment besides, unless they are set already.

    Raises:
        ProgramFailed: It exited with an error; the message ends with what it said last.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {**(settings or {}), **environment(home)}
    with log.open("wb") as output:
        code = run_group([path_of(command[0]), *command[1:]], env, output)
    if code != 0:
        raise failed(f"`{' '.join(command)}`", code, log)
    return log.read_text(errors="replace")


def failed(name: str, code: int, log: Path) -> ProgramFailed:
    """The error that says how a program ended, and what its log has last."""
    last = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    said = "".join(f"\n  | {line}" for line in last)
    return ProgramFailed(f"{name} exited with {code}: see {log}; it said last:{said}")


def path_of(program: str) -> str:
    """A console program of this environment, whatever PATH is."""
    return str(Path(sys.executable).parent / program)


def environment(home: Home) -> dict[str, str]:
    """What the programs see: this sandbox, this project's dbt, no other settings of dbt.

    But where dbt writes: that changes nothing of what it does.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DBT_") or name == "DBT_TARGET_PATH"
    }
    return {**env, **home.environment()}


def run_group(command: list[str], env: dict[str, str], output: IO[bytes]) -> int:
    """Run a program in its own process group, which ends with us however we end."""
    running = _start(command, env, output)
    try:
        return running.wait()
    except BaseException:  # Ctrl-C reaches only us: the group is not the terminal's
        process.end_group(running.pid, _STOP_SECONDS)
        running.wait()
        raise


def json_lines(printed: str) -> list[dict[str, Any]]:
    """The lines of a program's output that are JSON objects."""
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def _start(
    command: list[str], env: dict[str, str], output: IO[bytes], inherited: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=PROJECT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=inherited,
    )
