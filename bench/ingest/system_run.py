"""One run of one system, in a process of its own that is monitored from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.ingest.fixture import Fixture
from bench.ingest.jobs import marks
from bench.ingest.losses import Landed, losses
from bench.ingest.results import Run
from bench.ingest.usage import MIB, Meter, usage
from bench.ingest.watch import Seen, Watch
from sandbox.processes import process, programs
from sandbox.settings import PROJECT, Home
from spark_ingest.errors import MillraceError

_END_SECONDS = 30.0
_RUN_SECONDS = 1800.0
_POLL_SECONDS = 0.1
_LOOK_SECONDS = 0.05
_TAIL_LINES = 5


class RunFailed(MillraceError):
    """A system exited with an error, or did not finish in time."""


@dataclass
class Output:
    """The output of a program, with the time of each line.

    Attributes:
        lines: Moment (seconds since 1970) and text.
    """

    lines: list[tuple[float, str]] = field(default_factory=list)

    def moment(self, word: str) -> float | None:
        """The time of the first line that contains this text."""
        return next((at for at, line in self.lines if word in line), None)

    def mark(self, what: str) -> float | None:
        """The time of a mark."""
        found = (marks.read(line) for _, line in self.lines)
        return next((mark[1] for mark in found if mark and mark[0] == what), None)


class System(ABC):
    """A system under test: it reads records from Kafka.

    Attributes:
        name: For the results.
        table: The Iceberg table that it writes; None if it writes none.
    """

    name: str
    table: str | None = None

    def prepare(self, fixture: Fixture) -> None:
        """Create what it needs before its process starts."""
        del fixture

    @abstractmethod
    def command(self, fixture: Fixture) -> list[str]:
        """Its program and arguments."""

    def is_done(self, fixture: Fixture, output: Output, seen: list[Seen]) -> bool:
        """Whether to stop it now; most systems exit on their own."""
        del fixture, output, seen
        return False

    def span(self, output: Output, seen: list[Seen]) -> tuple[float, float] | None:
        """From its first read until all is visible, in seconds since 1970."""
        del seen
        begin, end = output.mark("begin"), output.mark("end")
        return None if begin is None or end is None else (begin, end)

    def landed(self, fixture: Fixture) -> Landed | None:
        """What it has written; None if it discards the records on purpose."""
        del fixture
        return None


def run(system: System, fixture: Fixture) -> Run:
    """Let a system read the whole topic once, and check what it wrote.

    Raises:
        RunFailed: It exited with an error, or timed out.
    """
    fixture.clear()
    system.prepare(fixture)
    load = os.getloadavg()[0]
    log = fixture.home.logs / f"{system.name.replace(' ', '-')}.log"
    watch = Watch(fixture.catalog, system.table, _LOOK_SECONDS) if system.table else None
    try:
        with running(system.command(fixture), fixture.home, log) as program:
            _wait(system, fixture, program, watch)
    finally:
        seen = watch.stop() if watch else []
    span = system.span(program.output, seen)
    if span is None:
        raise RunFailed(f"{system.name} did not finish: see {log}{_tail(log)}")
    took = usage(program.samples, *span)
    landed = system.landed(fixture)
    return Run(
        records=fixture.sent.records,
        seconds=round(took.seconds, 2),
        cpu_seconds=round(took.cpu_seconds, 2),
        peak_rss_mb=round(took.peak_rss_bytes / MIB),
        load=round(load, 2),
        loses=(
            "all: it keeps nothing"
            if landed is None
            else losses(landed, fixture.sent, fixture.fields)
        ),
    )


class Program:
    """A running program: its process, output and resource usage."""

    def __init__(self, popen: subprocess.Popen[str], log: Path) -> None:
        self.log = log
        self.popen = popen
        self.output = Output()
        self.meter = Meter(popen.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self) -> None:
        """Stop it if it still runs, and its child processes."""
        if self.popen.poll() is None:
            process.end_group(self.popen.pid, _END_SECONDS)
        self.popen.wait()
        process.end_left_over(self.popen.pid, _END_SECONDS)
        self._reader.join()
        self.samples = self.meter.stop()

    def stop(self, seconds: float) -> None:
        """Send SIGTERM and wait for a clean exit; after ``seconds`` it is killed."""
        self.popen.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(seconds)

    def check(self, name: str) -> None:
        """Check that it has not failed.

        Raises:
            RunFailed: It exited with an error; the message ends with its last output.
        """
        code = self.popen.poll()
        if code:
            time.sleep(_POLL_SECONDS)
            raise RunFailed(
                f"{name} ended with exit code {code}: its log is {self.log}{_tail(self.log)}"
            )

    def _read(self) -> None:
        output = self.popen.stdout
        if output is None:
            return
        with self.log.open("w") as log:
            for line in output:
                self.output.lines.append((time.time(), line))
                log.write(line)
                log.flush()


@contextmanager
def running(command: list[str], home: Home, log: Path) -> Iterator[Program]:
    """Run a program in its own process group, which is stopped when the block exits.

    Args:
        command: The program and its arguments.
        home: The sandbox that it uses.
        log: The file for its output.
    """
    env = programs.environment(home)
    for name in ("SPARK_HOME", "SANDBOX_PORT_OFFSET"):
        env.pop(name, None)
    # Otherwise an executor would listen on the address of the host name.
    env["SPARK_LOCAL_IP"] = "127.0.0.1"
    env["SPARK_WORKER_DIR"] = str(home.path / "executors")
    log.parent.mkdir(parents=True, exist_ok=True)
    popen = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    program = Program(popen, log)
    try:
        yield program
    finally:
        program.finish()


def wait_for(done: Callable[[], bool], program: Program, seconds: float) -> None:
    """Wait for a condition while a program runs.

    Raises:
        RunFailed: The program exited with an error, or the wait timed out.
    """
    deadline = time.monotonic() + seconds
    while not done():
        program.check("spark-ingest")
        if program.popen.poll() is not None or time.monotonic() > deadline:
            raise RunFailed(
                f"spark-ingest did not get there in {seconds:.0f} s: its log is"
                f" {program.log}{_tail(program.log)}"
            )
        time.sleep(_POLL_SECONDS)


def _wait(system: System, fixture: Fixture, program: Program, watch: Watch | None) -> None:
    deadline = time.monotonic() + _RUN_SECONDS
    while program.popen.poll() is None:
        if system.is_done(fixture, program.output, watch.seen if watch else []):
            return
        if time.monotonic() > deadline:
            raise RunFailed(
                f"{system.name} is not done after {_RUN_SECONDS:.0f} s: its log is"
                f" {program.log}{_tail(program.log)}"
            )
        time.sleep(_POLL_SECONDS)
    program.check(system.name)


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError:
        return ""
    return "".join(f"\n  | {line}" for line in lines)
