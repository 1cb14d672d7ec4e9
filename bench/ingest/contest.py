"""One run of one contestant: a process of its own, watched from outside."""

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

from bench.ingest.ground import Ground
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


class ContestantFailed(MillraceError):
    """A contestant ended with an error, or not at all."""


@dataclass
class Said:
    """What a program printed, and when each line came.

    Attributes:
        lines: Moment (seconds since 1970) and text.
    """

    lines: list[tuple[float, str]] = field(default_factory=list)

    def moment(self, word: str) -> float | None:
        """When the first line came that has this in it."""
        return next((at for at, line in self.lines if word in line), None)

    def mark(self, what: str) -> float | None:
        """The moment of a mark."""
        found = (marks.read(line) for _, line in self.lines)
        return next((mark[1] for mark in found if mark and mark[0] == what), None)


class Contestant(ABC):
    """A way to get records out of Kafka.

    Attributes:
        name: For the results.
        table: What it fills, in the lake's catalog; None where it fills none.
    """

    name: str
    table: str | None = None

    def prepare(self, ground: Ground) -> None:
        """Make what it needs, before its process starts."""
        del ground

    @abstractmethod
    def command(self, ground: Ground) -> list[str]:
        """Its program and arguments."""

    def is_done(self, ground: Ground, said: Said, seen: list[Seen]) -> bool:
        """Whether it shall be ended now; most end by themselves."""
        del ground, said, seen
        return False

    def span(self, said: Said, seen: list[Seen]) -> tuple[float, float] | None:
        """From its first read until all is visible, in seconds since 1970."""
        del seen
        begin, end = said.mark("begin"), said.mark("end")
        return None if begin is None or end is None else (begin, end)

    def landed(self, ground: Ground) -> Landed | None:
        """What it has now; None where it keeps nothing on purpose."""
        del ground
        return None


def run(contestant: Contestant, ground: Ground) -> Run:
    """Let a contestant take the whole topic once, and look what it has.

    Raises:
        ContestantFailed: It ended with an error, or not in time.
    """
    ground.clear()
    contestant.prepare(ground)
    load = os.getloadavg()[0]
    log = ground.home.logs / f"{contestant.name.replace(' ', '-')}.log"
    watch = Watch(ground.catalog, contestant.table, _LOOK_SECONDS) if contestant.table else None
    try:
        with running(contestant.command(ground), ground.home, log) as program:
            _wait(contestant, ground, program, watch)
    finally:
        seen = watch.stop() if watch else []
    span = contestant.span(program.said, seen)
    if span is None:
        raise ContestantFailed(
            f"{contestant.name} brought nothing to its end: its log is {log}{_tail(log)}"
        )
    took = usage(program.samples, *span)
    landed = contestant.landed(ground)
    return Run(
        records=ground.sent.records,
        seconds=round(took.seconds, 2),
        cpu_seconds=round(took.cpu_seconds, 2),
        peak_rss_mb=round(took.peak_rss_bytes / MIB),
        load=round(load, 2),
        loses=(
            "all: it keeps nothing"
            if landed is None
            else losses(landed, ground.sent, ground.fields)
        ),
    )


class Program:
    """A running program: its process, what it says, what it takes."""

    def __init__(self, popen: subprocess.Popen[str], log: Path) -> None:
        self.log = log
        self.popen = popen
        self.said = Said()
        self.meter = Meter(popen.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self) -> None:
        """End what still runs, and all that it started."""
        if self.popen.poll() is None:
            process.end_group(self.popen.pid, _END_SECONDS)
        self.popen.wait()
        process.end_left_over(self.popen.pid, _END_SECONDS)
        self._reader.join()
        self.samples = self.meter.stop()

    def stop(self, seconds: float) -> None:
        """Let it finish what it does: what takes longer is killed, and must have done no harm."""
        self.popen.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(seconds)

    def check(self, name: str) -> None:
        """Complain when it has ended with an error.

        Raises:
            ContestantFailed: With what it said last.
        """
        code = self.popen.poll()
        if code:
            time.sleep(_POLL_SECONDS)
            raise ContestantFailed(
                f"{name} ended with exit code {code}: its log is {self.log}{_tail(self.log)}"
            )

    def _read(self) -> None:
        output = self.popen.stdout
        if output is None:
            return
        with self.log.open("w") as log:
            for line in output:
                self.said.lines.append((time.time(), line))
                log.write(line)
                log.flush()


@contextmanager
def running(command: list[str], home: Home, log: Path) -> Iterator[Program]:
    """A program in a process group of its own, which ends with the block, however it ends.

    Args:
        command: The program and its arguments.
        home: The sandbox that it sees.
        log: The file that gets all it prints.
    """
    env = programs.environment(home)
    for name in ("SPARK_HOME", "SANDBOX_PORT_OFFSET"):
        env.pop(name, None)
    # Whatever the machine is called: an executor of its own would listen on that address.
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
    """Wait until something is so, as long as a program runs.

    Raises:
        ContestantFailed: The program ended with an error, or the time is over.
    """
    deadline = time.monotonic() + seconds
    while not done():
        program.check("spark-ingest")
        if program.popen.poll() is not None or time.monotonic() > deadline:
            raise ContestantFailed(
                f"spark-ingest did not get there in {seconds:.0f} s: its log is"
                f" {program.log}{_tail(program.log)}"
            )
        time.sleep(_POLL_SECONDS)


def _wait(contestant: Contestant, ground: Ground, program: Program, watch: Watch | None) -> None:
    deadline = time.monotonic() + _RUN_SECONDS
    while program.popen.poll() is None:
        if contestant.is_done(ground, program.said, watch.seen if watch else []):
            return
        if time.monotonic() > deadline:
            raise ContestantFailed(
                f"{contestant.name} is not done after {_RUN_SECONDS:.0f} s: its log is"
                f" {program.log}{_tail(program.log)}"
            )
        time.sleep(_POLL_SECONDS)
    program.check(contestant.name)


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError:
        return ""
    return "".join(f"\n  | {line}" for line in lines)
