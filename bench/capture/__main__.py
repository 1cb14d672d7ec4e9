"""How long a database's commit takes to bronze, to a live view and to the current state.

::

    python -m bench.capture                  # 200 changes a second for five minutes, a burst
    python -m bench.capture --seconds 30     # does it work?
    python -m bench.capture --write-docs     # and put the results into the docs
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import takewhile
from statistics import median
from typing import Annotated, Any

import typer

from bench.capture.events import ANSWER, CHANGES, READY, ROUND
from bench.capture.results import Capture, Steady, results_of
from bench.capture.waits import Change, Round, to_bronze, to_current, to_live, visible
from bench.ingest.fixture import open_sandbox
from bench.ingest.system_run import Program, running, wait_for
from bench.ingest.usage import usage
from bench.ingest.watch import Watch
from bench.report.machine import Measurement
from bench.report.results import Results
from bench.run import FOLDER, Benchmark, Folder
from sandbox.databases import run, statements
from sandbox.databases.known import DATABASES
from sandbox.databases.server import opened
from sandbox.databases.state import DatabaseState
from sandbox.databases.transactions import transactions
from sandbox.processes import programs
from sandbox.services import stack
from sandbox.services.connect import wait_until_passed
from sandbox.services.kafka import end_offsets
from sandbox.settings import Home
from sandbox.ui import say
from spark_ingest.lake.preflight import check_spark

DATABASE = DATABASES["moma"]
TABLES = {f"moma.{table.name}": f"moma__{table.name}" for table in DATABASE.tables}
HISTORIES = [f"int_moma__{table.name}_history" for table in DATABASE.tables]
LIVE = ("moma.artists", "int_moma__artists_live")
EVERY = "1s"
_LOOK_SECONDS = 0.05
_START_SECONDS = 400.0
_LAST_SECONDS = 600.0
# JVMs that have just started are slow: what comes first does not count.
_WARM_ROUNDS = 5
_WARM_ANSWERS = 30
_ENDS = "millrace.end-offsets"
_POLL_SECONDS = 0.5

BENCHMARK = Benchmark("capture", "make bench-cdc")


def capture(
    rate: Annotated[float, typer.Option(min=1, help="Changes a second.")] = 200,
    seconds: Annotated[float, typer.Option(min=5, help="How long changes count.")] = 300.0,
    burst: Annotated[
        int, typer.Option(min=1, help="Changes made as fast as the database takes them.")
    ] = 30_000,
    folder: Folder = FOLDER,
) -> Iterator[Results]:
    """Measure the museum's way from PostgreSQL's commit to bronze, live view and current state.

    `spark-ingest run`, dbt's rounds (one after the other, of the lowest priority) and a reader who
    asks the live view now and then are processes of their own.
    """
    check_spark()
    measurement = Measurement(BENCHMARK.name)
    with open_sandbox(folder / f"capture-{os.getpid()}") as home:
        done = _Run(home).measure(rate, seconds, burst)
    yield results_of(done, measurement.about())


class _Run:
    """A database that changes, and all that follows it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._rounds: list[Round] = []

    def measure(self, rate: float, seconds: float, burst: int) -> Capture:
        """Steady changes, then a burst."""
        home = self._home
        stack.up(home, ["kafka", "registry", DATABASE.engine])
        with opened(home, DATABASE) as connection:
            rows = DATABASE.rows(1, DATABASE.size)
            filled = statements.fill(DATABASE, connection, rows).total()
        stack.up(home, ["connect"])
        wait_until_passed(home, DATABASE.connector)
        ingest = [programs.path_of("spark-ingest"), "run", "moma", "--every", EVERY]
        rounds = [sys.executable, "-m", "bench.capture.rounds", json.dumps(TABLES)]
        rounds += [*HISTORIES, LIVE[1]]
        asks = [sys.executable, "-m", "bench.capture.answers", *LIVE]
        with ExitStack() as ends:
            catalog = home.lake / "catalog.db"
            watches = {
                name: Watch(catalog, f"bronze.{table}", _LOOK_SECONDS)
                for name, table in TABLES.items()
            }
            for watch in watches.values():
                ends.callback(watch.stop)
            runner = running(ingest, home, home.logs / "run.log")
            program = ends.enter_context(runner)
            wait_for(lambda: all(w.records for w in watches.values()), program, _START_SECONDS)
            builder = running(rounds, home, home.logs / "rounds.log")
            dbt = ends.enter_context(builder)
            wait_for(lambda: dbt.output.moment(READY) is not None, dbt, _START_SECONDS)
            asker = running(asks, home, home.logs / "answers.log")
            reader = ends.enter_context(asker)
            begin, end = self._steadily(rate, seconds, dbt, reader)
            wait_until_passed(home, DATABASE.connector)
            self._until_in_bronze(watches, dbt)
            self._until_current(watches, dbt)
            self._until_answered(watches, reader)
            reader.popen.send_signal(signal.SIGTERM)
            say(f"{burst:,} changes at once")
            first = time.time()
            moments = self._at_once(burst, watches, dbt)
            dbt.stop(_LAST_SECONDS)
            program.stop(_LAST_SECONDS)
        seen = {name: visible(watch.seen) for name, watch in watches.items()}
        changes = [one for one in _changes(dbt) if begin <= one.at < end]
        answers = _read_events(reader, ANSWER)
        counted = [one for one in self._rounds if begin <= one.at and one.at - one.seconds <= end]
        took = sum(usage(each.samples, begin, end).cpu_seconds for each in (program, dbt, reader))
        steady = Steady(
            rate=rate,
            changes=sum(one.count for one in changes),
            bronze=to_bronze(changes, seen),
            live=to_live([one for one in changes if one.stream == LIVE[0]], seen, answers),
            answer_seconds=round(
                median(one.seconds for one in answers if begin <= one.at <= end), 2
            ),
            current=to_current(changes, self._rounds),
            rounds=len(counted),
            round_seconds=round(median(one.seconds for one in counted), 1),
            cores=round(took / (end - begin), 2),
        )
        stages = {name: round(at - first, 1) for name, at in moments.items()}
        return Capture(EVERY, filled, steady, burst, stages)

    def _steadily(
        self, rate: float, seconds: float, dbt: Program, reader: Program
    ) -> tuple[float, float]:
        """Let changes come, and say from when until when they count."""
        stopping = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            writer = pool.submit(self._change, 1, None, rate, stopping)
            try:
                wait_for(
                    lambda: len(_events(reader, ANSWER)) >= _WARM_ANSWERS, reader, _START_SECONDS
                )
                # Until then it leaves little to dbt, which has a lower priority.
                reader.popen.send_signal(signal.SIGUSR1)
                enough = len(self._reported_rounds(dbt)) + _WARM_ROUNDS
                wait_for(lambda: len(self._reported_rounds(dbt)) >= enough, dbt, _START_SECONDS)
                say(f"{rate:g} changes a second for {seconds:.0f} s")
                begin = time.time()
                while time.time() < begin + seconds and not writer.done():
                    dbt.check("dbt")
                    reader.check("the live view's reader")
                    time.sleep(_POLL_SECONDS)
            finally:
                stopping.set()
            writer.result()
        return begin, time.time()

    def _at_once(
        self, changes: int, watches: Mapping[str, Watch], dbt: Program
    ) -> dict[str, float]:
        """Commit changes as fast as can be; when all of them were where."""
        self._change(2, changes, None, threading.Event())
        moments = {"PostgreSQL": time.time()}
        wait_until_passed(self._home, DATABASE.connector)
        moments["Kafka"] = time.time()
        moments["bronze"] = self._until_in_bronze(watches, dbt)
        moments["current state"] = self._until_current(watches, dbt)
        return moments

    def _change(
        self, seed: int, changes: int | None, rate: float | None, stop: threading.Event
    ) -> None:
        with opened(self._home, DATABASE) as connection:
            state = DatabaseState(DATABASE, statements.stored(DATABASE, connection))
            drawn = transactions(state, DATABASE.operations, seed, changes)
            wanted = takewhile(lambda _: not stop.is_set(), drawn)
            run.run(DATABASE, connection, wanted, rate)

    def _until_in_bronze(self, watches: Mapping[str, Watch], dbt: Program) -> float:
        """Wait until bronze has what Kafka has; when it had."""
        ends = {name: sum(end_offsets(self._home, _topic(name)).values()) for name in watches}
        wait_for(
            lambda: all(_landed(watch) >= ends[name] for name, watch in watches.items()),
            dbt,
            _LAST_SECONDS,
        )
        return time.time()

    def _until_current(self, watches: Mapping[str, Watch], dbt: Program) -> float:
        """Wait until a round has read what bronze has; when that round had ended."""
        wanted = {name: max(visible(watch.seen)) for name, watch in watches.items()}

        def all_read_at() -> float | None:
            reached = (
                one.at
                for one in self._reported_rounds(dbt)
                if all(one.read.get(name, 0) >= to for name, to in wanted.items())
            )
            return next(reached, None)

        wait_for(lambda: all_read_at() is not None, dbt, _LAST_SECONDS)
        return all_read_at() or 0.0

    def _until_answered(self, watches: Mapping[str, Watch], reader: Program) -> None:
        """Wait until an answer of the live view, asked for from now on, has what bronze has."""
        now, to = time.time(), max(visible(watches[LIVE[0]].seen))
        wait_for(
            lambda: any(
                one.at - one.seconds >= now and one.read[LIVE[0]] >= to
                for one in _read_events(reader, ANSWER)
            ),
            reader,
            _LAST_SECONDS,
        )

    def _reported_rounds(self, dbt: Program) -> list[Round]:
        """The rounds that dbt has reported."""
        self._rounds = _read_events(dbt, ROUND)
        return self._rounds


def _events(program: Program, event: str) -> list[dict[str, Any]]:
    lines = "".join(line for _, line in list(program.output.lines))
    return [one for one in programs.json_lines(lines) if one["event"] == event]


def _read_events(program: Program, event: str) -> list[Round]:
    return [Round(one["at"], one["seconds"], one["read"]) for one in _events(program, event)]


def _topic(stream: str) -> str:
    source, _, table = stream.partition(".")
    return f"{source}.public.{table}"


def _landed(watch: Watch) -> int:
    """How many offsets of its topic a table has."""
    ends = json.loads(watch.seen[-1].summary.get(_ENDS, "{}"))
    return sum(ends.values())


def _changes(dbt: Program) -> list[Change]:
    """The changes in bronze, as the program of the rounds reported them at its end."""
    return [
        Change(one["stream"], commit_id, millis / 1000, count)
        for one in _events(dbt, CHANGES)
        for commit_id, millis, count in one["rows"]
    ]


if __name__ == "__main__":
    BENCHMARK.run(capture)
