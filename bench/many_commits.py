"""Starting a stream and verifying it, when its table has had ten thousand commits.

::

    python -m bench.many_commits                 # an hour
    python -m bench.many_commits --quick         # does it work?
    python -m bench.many_commits --write-docs    # and put the results into the docs

A stream commits as often as it can, with maintenance beside it. At some numbers of commits it
stops, and each command is timed as a program of its own, the start of its JVM included.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from statistics import median
from typing import Annotated

import typer

from bench.ingest.fill import Record, Sender
from bench.ingest.fixture import SCHEMA, Fixture, open_sandbox, prepare, write_manifest
from bench.ingest.load import payloads
from bench.ingest.system_run import Program, RunFailed, running, wait_for
from bench.ingest.systems import TABLE, ingest_command, run_command
from bench.ingest.watch import metadata
from bench.report.machine import Measurement
from bench.report.results import Cell, Results, Table
from bench.run import FOLDER, Benchmark, Folder, Quick
from sandbox.ui import say

BENCHMARK = Benchmark(
    "many_commits",
    trial=lambda options: "quick-many-commits.json" if options["quick"] else None,
)
COMMITS = (100, 1_000, 3_000, 10_000)
_RATE = 100
_UPKEEP = ("--every", "2m", "--keep", "2m")
_SECONDS = 3600.0
_STOP_SECONDS = 120.0


def many_commits(
    most: Annotated[int, typer.Option(help="No more commits than this.", min=COMMITS[0])] = 10_000,
    folder: Folder = FOLDER,
    quick: Quick = False,
) -> Iterator[Results]:
    """Time a start, `verify` and `verify --full` after more and more commits.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    wanted = tuple(number for number in COMMITS if number <= most)
    numbers, rounds = ((5, 20), 1) if quick else (wanted, 3)
    measurement = Measurement(BENCHMARK.name)
    columns = {
        "commits": 0, "snapshots": 0, "`run --once`, one record, s": 1, "`verify`, s": 1,
        "`verify --full`, s": 1,
    }  # fmt: skip
    rows: list[list[Cell]] = []
    with open_sandbox(folder / f"many-commits-{os.getpid()}") as home:
        stream = _Stream(prepare(home, "bench.commits", 0))
        for number in numbers:
            stream.commit_until(number)
            rows.append([number, stream.snapshots(), *stream.timed(rounds)])
            say(
                "  "
                + ", ".join(f"{name} {cell}" for name, cell in zip(columns, rows[-1], strict=True))
            )
            table = Table(columns=columns, rows=rows)
            yield Results(parts={"many_commits": [table, measurement.about()]})


class _Stream:
    """A stream that is stopped, and what it committed so far."""

    def __init__(self, fixture: Fixture) -> None:
        self._fixture = fixture
        self._pool = payloads(fixture.shape, 1, fixture.ids)
        self._sent = count()
        self._manifest = fixture.folder / "manifest.json"
        fixture.clear()
        write_manifest(self._manifest, {TABLE: fixture.topic})

    def commit_until(self, number: int) -> None:
        """Let it work until its table has had so many commits, then expire its snapshots."""
        fixture = self._fixture
        stream, log = run_command(self._manifest, "--every", "1ms"), fixture.home.logs / "run.log"
        upkeep = ingest_command(self._manifest, "maintain", *_UPKEEP)
        with (
            running(stream, fixture.home, log) as program,
            running(upkeep, fixture.home, fixture.home.logs / "upkeep.log") as maintained,
            Sender(fixture.home.bootstrap_servers, _RATE, self._record),
        ):
            wait_for(lambda: _last_commit(program) >= number, program, _SECONDS)
            maintained.check("spark-ingest maintain")
            maintained.stop(_STOP_SECONDS)
            program.stop(_STOP_SECONDS)
        self._seconds("maintain", "--keep", "1s")

    def snapshots(self) -> int:
        """How many its table's metadata lists."""
        found = metadata(self._fixture.catalog, f"{SCHEMA}.{TABLE}")
        return 0 if found is None else len(found["snapshots"])

    def timed(self, rounds: int) -> list[float]:
        """Median seconds of `run --once`, `verify` and `verify --full`, each with a new record."""
        # What waited when the stream was stopped is not new.
        self._seconds("run", "--once")
        self._seconds("verify")
        found = list[list[float]]()
        for _ in range(rounds):
            self._send_one()
            found.append(
                [
                    self._seconds("run", "--once"),
                    self._seconds("verify"),
                    self._seconds("verify", "--full"),
                ]
            )
        return [round(median(each), 1) for each in zip(*found, strict=True)]

    def _send_one(self) -> None:
        with Sender(self._fixture.home.bootstrap_servers, _RATE, self._record) as sender:
            while not sender.sent:
                time.sleep(0.01)

    def _record(self, _: int) -> Record:
        number = next(self._sent)
        key = b"r-%016d" % number
        place = number % self._fixture.partitions
        return self._fixture.topic, place, key, self._pool[number % len(self._pool)]

    def _seconds(self, *words: str) -> float:
        home = self._fixture.home
        log = home.logs / f"{words[0]}-once.log"
        begin = time.monotonic()
        with running(ingest_command(self._manifest, *words), home, log) as program:
            if program.popen.wait(_SECONDS) != 0:
                raise RunFailed(f"spark-ingest {' '.join(words)} failed: its log is {log}")
            # The end of what measures the program takes up to a second more.
            return time.monotonic() - begin


def _last_commit(program: Program) -> int:
    """The id of the last commit that `run` has reported."""
    for _, line in reversed(program.output.lines):
        with suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["commit_id"])
    return 0


if __name__ == "__main__":
    BENCHMARK.run(many_commits)
