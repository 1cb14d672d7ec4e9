"""`sandbox live`: events, ingest and marts at once, until a person stops it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from rich.live import Live as Screen

from sandbox.install import spark_conf
from sandbox.processes.locks import claimed
from sandbox.processes.programs import Running, path_of
from sandbox.services import stack
from sandbox.settings import Home
from sandbox.tour.demo import SHARES, next_seed
from sandbox.tour.round_report import PREPARING, READY, ROUND, History, Round
from sandbox.tour.scenarios import EVENTS
from sandbox.ui import echo, err, out, say
from spark_ingest.lake.preflight import check_disk, check_java, check_spark_home

DEFAULT_RATE = 500.0
EVERY = "5s"
_POLL_SECONDS = 0.2
# Ingest finishes its batch, dbt its round.
_END_SECONDS = 120.0


@dataclass
class Live:
    """One run.

    Attributes:
        rate: Events per second, over all sources.
        minutes: How long rounds go on; None is until stopped.
    """

    home: Home
    rate: float
    minutes: float | None
    _history: History = field(default_factory=History)
    _stopped: bool = False

    def run(self) -> None:
        """Start all, show what happens, end all.

        Raises:
            MillraceError: Something does not start, or a program died.
        """
        check_java()
        check_spark_home()
        check_disk(self.home.path)
        with (
            claimed(self.home.lake_lock, "`sandbox live`") as lock,
            self._until_stopped(),
            self._services(),
            self._programs(lock) as programs,
        ):
            self._watch(programs)
        echo(self._history.summary())

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        """Ctrl-C asks for the end, once and as often as it is pressed."""
        before = signal.signal(signal.SIGINT, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before or signal.SIG_DFL)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._stopped:
            self._stopped = True
            say("ending: the batch and the round at work are finished first")

    @contextmanager
    def _services(self) -> Iterator[None]:
        # Ingest and dbt would fetch them too, with the progress in their logs.
        spark_conf.bring_spark()
        say("starting broker and registry")
        started = stack.up(self.home)
        try:
            yield
        finally:
            if started:
                stack.down(self.home, started)

    @contextmanager
    def _programs(self, lock: int) -> Iterator[list[Running]]:
        """Producers, ingest and the rounds; all have ended behind it."""
        seed = next_seed(self.home, EVENTS.streams)
        commands = {
            f"produce-{source}": [
                *(path_of("sandbox"), "produce", source),
                *("--rate", f"{self.rate / len(SHARES):g}/s"),
                *SHARES[source],
                *("--seed", f"{seed}"),
            ]
            for source in SHARES
        }
        commands["ingest"] = [path_of("spark-ingest"), "run", "--every", EVERY]
        commands["rounds"] = [sys.executable, "-m", "sandbox.tour.dbt_rounds"]
        programs: list[Running] = []
        try:
            for name, command in commands.items():
                log = self.home.logs / f"live-{name}.log"
                programs.append(Running(name, command, self.home, log, lock))
            yield programs
        finally:
            for program in programs:
                # Producers and ingest end well at Ctrl-C, the rounds at SIGTERM.
                last = program.name == "rounds"
                program.ask_to_end(signal.SIGTERM if last else signal.SIGINT)
            deadline = time.monotonic() + _END_SECONDS
            for program in programs:
                program.end(max(deadline - time.monotonic(), 1.0))

    def _watch(self, programs: list[Running]) -> None:
        say(f"sending {self.rate:g} events/s, ingesting every {EVERY}, starting dbt")
        begun = time.monotonic()
        deadline: float | None = None
        with Screen(console=err, auto_refresh=False, transient=True) as screen:
            while not self._stopped:
                for program in programs:
                    program.check()
                    for message in program.messages():
                        if message["event"] == READY and self.minutes is not None:
                            deadline = time.monotonic() + self.minutes * 60
                        self._take(message)
                if deadline is not None and time.monotonic() > deadline:
                    self._stopped = True
                if err.is_terminal:
                    running = f"live for {time.monotonic() - begun:.0f} s, Ctrl-C ends it"
                    screen.update(self._history.table(running), refresh=True)
                time.sleep(_POLL_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        history = self._history
        if message["event"] == "batch":
            history.lags[message["stream"]] = message["lag"]
        elif message["event"] == PREPARING:
            say(
                f"building and testing all, because {_some(message['missing'])} missing"
                if message["missing"]
                else "all marts are there: making the views again"
            )
        elif message["event"] == READY:
            say(f"ready after {message['seconds']:.0f} s: increments begin")
        elif message["event"] == ROUND:
            history.rounds.append(Round.read(message))
            if not err.is_terminal:
                echo(history.last_line())
                out.file.flush()


def _some(relations: list[str]) -> str:
    """The first of them and how many more."""
    more = len(relations) - 1
    return relations[0] + (f" and {more} more are" if more else " is")
