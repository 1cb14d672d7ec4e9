"""Starting streams and verifying them, when their lake has had ten thousand commits.

::

    python -m bench.many_commits                 # an hour
    python -m bench.many_commits --quick         # does it work?
    python -m bench.many_commits --write-docs    # and put the results into the docs

Four streams commit as often as they can, with maintenance beside them. Then each command is
timed as a program of its own, the start of its JVM included. In turns with it the same command is
timed on a lake that has the same records in a few commits.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from statistics import median
from typing import Annotated, Any

import typer

from bench.ingest.fill import Record, Sender
from bench.ingest.fixture import SCHEMA, Fixture, open_sandbox, prepare, write_manifest
from bench.ingest.load import payloads
from bench.ingest.system_run import Program, RunFailed, running, wait_for
from bench.ingest.systems import TABLE, ingest_command, run_command
from bench.ingest.watch import metadata
from bench.report.machine import Measurement
from bench.report.results import Results, Table
from bench.run import FOLDER, Benchmark, Folder, Quick
from sandbox.install import spark_conf
from sandbox.settings import Home

BENCHMARK = Benchmark(
    "many_commits",
    trial=lambda options: "quick-many-commits.json" if options["quick"] else None,
)
TOPICS = {f"{TABLE}_{number}": f"bench.receipts-{number}" for number in range(1, 5)}
COMMANDS = ("run --once", "verify", "verify --full")
_RATE = 100
_UPKEEP = ("--every", "2m", "--keep", "2m")
_SECONDS = 3600.0
_STOP_SECONDS = 120.0


def many_commits(
    commits: Annotated[int, typer.Option(help="To all tables together.", min=10)] = 10_000,
    folder: Folder = FOLDER,
    quick: Quick = False,
) -> Iterator[Results]:
    """Time a start, `verify` and `verify --full` after many commits, and after a few.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    number, rounds = (20, 1) if quick else (commits, 3)
    measurement = Measurement(BENCHMARK.name)
    with open_sandbox(folder / f"many-commits-{os.getpid()}") as home:
        records = _Records([prepare(home, topic, 0, partitions=1) for topic in TOPICS.values()])
        lakes = _Lake(home), _Lake(Home(home.path / "few", home.ports))
        lakes[0].commit_until(number, records)
        for lake in lakes:
            # What waited when the streams were stopped is not new.
            lake.seconds("run --once")
            lake.seconds("verify")
        found: dict[str, list[list[float]]] = {command: [] for command in COMMANDS}
        for _ in range(rounds):
            records.send_some()
            for command, seconds in found.items():
                seconds.append([lake.seconds(command) for lake in lakes])
        table = Table(
            columns={
                "lake": 0, "commits of all tables": 0, "snapshots of a table": 0,
                **{f"`{command}`, s": 1 for command in COMMANDS},
            },
            rows=[
                [name, lake.commits(), lake.snapshots(), *(
                    round(median(each[place] for each in seconds), 1) for seconds in found.values()
                )]
                for place, (name, lake) in enumerate(zip(("many", "few"), lakes, strict=True))
            ],
        )  # fmt: skip
        yield Results(parts={"many_commits": [table, measurement.about()]})


class _Records:
    """The records of the streams' topics, which take turns."""

    def __init__(self, fixtures: list[Fixture]) -> None:
        self._home = fixtures[0].home
        values = [payloads(each.shape, 1, each.ids, most=1)[0] for each in fixtures]
        self._next = cycle(zip((each.topic for each in fixtures), values, strict=True))

    def sender(self) -> Sender:
        """Sends them at a steady rate."""
        return Sender(self._home.bootstrap_servers, _RATE, self._record)

    def send_some(self) -> None:
        """Send one to each topic, or a few more."""
        with self.sender() as sender:
            while sender.sent < len(TOPICS):
                time.sleep(0.01)

    def _record(self, number: int) -> Record:
        topic, value = next(self._next)
        return topic, 0, b"r-%016d" % number, value


class _Lake:
    """A lake of its own, in which each table has all records of its topic."""

    def __init__(self, home: Home) -> None:
        """Set up an empty lake in ``home``, which need not have a broker of its own."""
        spark_conf.render(home, home.spark_conf)
        home.logs.mkdir(exist_ok=True)
        self._home = home
        self._manifest = home.path / "manifest.json"
        write_manifest(self._manifest, TOPICS)

    def commit_until(self, number: int, records: _Records) -> None:
        """Run the streams until they have made so many commits, then expire their snapshots."""
        home = self._home
        streams = run_command(self._manifest, "--every", "1ms")
        upkeep = ingest_command(self._manifest, "maintain", *_UPKEEP)
        with (
            running(streams, home, home.logs / "run.log") as program,
            running(upkeep, home, home.logs / "upkeep.log") as maintained,
            records.sender(),
        ):
            wait_for(lambda: _commits(program) >= number, program, _SECONDS)
            maintained.check("spark-ingest maintain")
            maintained.stop(_STOP_SECONDS)
            program.stop(_STOP_SECONDS)
        self.seconds("maintain --keep 1s")

    def commits(self) -> int:
        """The number of commits to all tables, those of `maintain` included."""
        return sum(int(found["last-sequence-number"]) for found in self._metadata())

    def snapshots(self) -> int:
        """The most snapshots that the metadata of a table lists."""
        return max(len(found["snapshots"]) for found in self._metadata())

    def seconds(self, command: str) -> float:
        """Run a command of `spark-ingest` as a program; return its seconds."""
        home, words = self._home, command.split()
        log = home.logs / f"{words[0]}-once.log"
        begin = time.monotonic()
        with running(ingest_command(self._manifest, *words), home, log) as program:
            if program.popen.wait(_SECONDS) != 0:
                raise RunFailed(f"spark-ingest {command} failed: its log is {log}")
            # The end of what measures the program takes up to a second more.
            return time.monotonic() - begin

    def _metadata(self) -> list[dict[str, Any]]:
        found = [metadata(self._home.lake / "catalog.db", f"{SCHEMA}.{each}") for each in TOPICS]
        return [each for each in found if each is not None]


def _commits(program: Program) -> int:
    """The number of commits that `run` has reported: each stream numbers its own."""
    last: dict[str, int] = {}
    for _, line in reversed(program.output.lines):
        with suppress(ValueError, KeyError, TypeError):
            batch = json.loads(line)
            last.setdefault(batch["stream"], int(batch["commit_id"]))
        if len(last) == len(TOPICS):
            break
    return sum(last.values())


if __name__ == "__main__":
    BENCHMARK.run(many_commits)
