"""Console programs of this environment, run by the demo and by `sandbox live`.

Each runs in a process group of its own, so that Ctrl-C reaches only the parent, which decides how
to stop the others.
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
    """A program exited with an error; the message contains the path of its log."""


class Running:
    """A background program that writes its output to a new log.

    Args:
        command: The program, as in :func:`path_of`, and its arguments.
        lock: File descriptor of a lock that it inherits.
    """

    def __init__(self, name: str, command: list[str], home: Home, log: Path, lock: int) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = _start(command, environment(home), output, (lock,))
        self._read = 0

    def messages(self) -> list[dict[str, Any]]:
        """The JSON objects that it has printed since the last call."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            added = log.read()
        # The text after the last line break is not a complete line yet.
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        return json_lines(whole.decode(errors="replace"))

    def check(self) -> None:
        """Check that it is running.

        Raises:
            ProgramFailed: It has exited; with its exit code, last line and log.
        """
        code = self._process.poll()
        if code is not None:
            raise ProgramFailed(
                f"{self.name} ended with exit code {code}: {self._last_line()};"
                f" its log is {self.log}"
            )

    def ask_to_end(self, number: signal.Signals) -> None:
        """Send the signal for a graceful stop, unless it has exited."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def end(self, grace: float) -> int | None:
        """Wait until it has exited, then stop the rest of its group.

        Returns its exit code; None if it was killed after ``grace`` seconds.
        """
        try:
            code = self._process.wait(grace)
        except subprocess.TimeoutExpired:
            process.end_group(self._process.pid, 0)
            self._process.wait()
            return None
        # A JVM exits a little later than its Python process.
        process.end_left_over(self._process.pid, _STOP_SECONDS)
        return code

    def _last_line(self) -> str:
        lines = [
            line
            for line in self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").splitlines()
            if line.strip() and not line.startswith("{")
        ]
        return " ".join(lines[-1].split()) if lines else "no output"


class Dialogue:
    """A child program with which JSON messages are exchanged.

    Each line on its standard input and output is a JSON object; its standard error goes to the
    log. The context manager closes its standard input and waits for its exit; after an exception
    it stops the program.

    Args:
        lock: File descriptor of a lock that it inherits.
        settings: Additional environment variables, unless they are set already.
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
                    # The program has exited without reading the rest.
                    with suppress(BrokenPipeError):
                        pipe.close()

    def send(self, **facts: Any) -> None:
        """Send a message; if the program has exited, :meth:`hear` reports it."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(f"{json.dumps(facts)}\n".encode())
                self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Receive the next message.

        Raises:
            ProgramFailed: It has exited; the error ends with its last output.
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

    ``settings`` are additional environment variables, unless they are set already.

    Raises:
        ProgramFailed: It exited with an error; the message ends with its last output.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {**(settings or {}), **environment(home)}
    with log.open("wb") as output:
        code = run_group([path_of(command[0]), *command[1:]], env, output)
    if code != 0:
        raise failed(f"`{' '.join(command)}`", code, log)
    return log.read_text(errors="replace")


def failed(name: str, code: int, log: Path) -> ProgramFailed:
    """The error for a failed program, with its exit code and the end of its log."""
    last = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    output = "".join(f"\n  | {line}" for line in last)
    return ProgramFailed(f"{name} exited with {code}: see {log}; last output:{output}")


def path_of(program: str) -> str:
    """The path of a console program of this environment, regardless of PATH."""
    return str(Path(sys.executable).parent / program)


def environment(home: Home) -> dict[str, str]:
    """The environment of the programs: this sandbox, and no settings of dbt.

    Except the target path of dbt.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DBT_") or name == "DBT_TARGET_PATH"
    }
    return {**env, **home.environment()}


def run_group(command: list[str], env: dict[str, str], output: IO[bytes]) -> int:
    """Run a program in its own process group, which is stopped if this process is interrupted."""
    running = _start(command, env, output)
    try:
        return running.wait()
    except BaseException:  # Ctrl-C does not reach the group, which is not in the foreground
        process.end_group(running.pid, _STOP_SECONDS)
        running.wait()
        raise


def json_lines(printed: str) -> list[dict[str, Any]]:
    """The JSON objects in the lines of a program's output."""
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
