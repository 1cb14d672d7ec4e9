"""`sandbox live`: producers, ingest and dbt rounds together, until it is stopped."""

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
# Time for ingest to finish its batch and dbt its round.
_END_SECONDS = 120.0


@dataclass
class Live:
    """One run.

    Attributes:
        rate: Events per second, over all sources.
        minutes: Stop after this time; None runs until stopped.
    """

    home: Home
    rate: float
    minutes: float | None
    _history: History = field(default_factory=History)
    _stopped: bool = False

    def run(self) -> None:
        """Start all programs, show their progress, stop them.

        Raises:
            MillraceError: A program did not start, or died.
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
        """Stop gracefully on Ctrl-C, however often it is pressed."""
        before = signal.signal(signal.SIGINT, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before or signal.SIG_DFL)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._stopped:
            self._stopped = True
            say("stopping after the current batch and round")

    @contextmanager
    def _services(self) -> Iterator[None]:
        # Otherwise ingest and dbt download the JARs, with the progress only in their logs.
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
        """Start producers, ingest and the rounds; stop them on exit."""
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
                # Producers and ingest stop gracefully on SIGINT, the rounds on SIGTERM.
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
                    running = f"live for {time.monotonic() - begun:.0f} s, Ctrl-C stops it"
                    screen.update(self._history.table(running), refresh=True)
                time.sleep(_POLL_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        history = self._history
        if message["event"] == "batch":
            history.lags[message["stream"]] = message["lag"]
        elif message["event"] == PREPARING:
            say(
                f"building and testing everything: {_some(message['missing'])} missing"
                if message["missing"]
                else "all marts exist: recreating the views"
            )
        elif message["event"] == READY:
            say(f"ready after {message['seconds']:.0f} s: increments begin")
        elif message["event"] == ROUND:
            history.rounds.append(Round.read(message))
            if not err.is_terminal:
                echo(history.last_line())
                out.file.flush()


def _some(relations: list[str]) -> str:
    """The first one and the number of the others."""
    more = len(relations) - 1
    return relations[0] + (f" and {more} more are" if more else " is")
