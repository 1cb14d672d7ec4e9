"""Soak test: many small commits with concurrent maintenance; nothing may grow.

::

    python -m bench.soak                  # 30 minutes, a commit every 2 s, 500 records/s
    python -m bench.soak --minutes 3      # smoke test
    python -m bench.soak --write-docs     # and update the docs
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

from bench.ingest.fill import Record, Sender
from bench.ingest.fixture import SCHEMA, Fixture, open_sandbox, prepare, write_manifest
from bench.ingest.load import payloads
from bench.ingest.load import records as records_of
from bench.ingest.system_run import Program, running, wait_for
from bench.ingest.systems import ingest_command, run_command
from bench.ingest.watch import metadata
from bench.report.machine import Measurement
from bench.report.results import About, Axes, Cell, Line, Plot, Results, Table
from bench.run import FOLDER, Benchmark, Folder
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.preflight import check_spark

TABLE = "soak__receipts"
_START_SECONDS = 300.0
_LAST_SECONDS = 240.0
_LOOK_SECONDS = 5.0

# What grows with time would be twice as much, or more, in the last third as in the second.
_GROWTH = 1.5
# Smaller differences are noise.
_NOISE = {"batch seconds": 0.3, "files": 30, "snapshots": 30, "metadata MB": 1.0}
_POINTS = 200
_THIRDS = {"median / most in the": 0, "first third": 2, "second": 2, "last": 2}
_PICTURE = (
    "![Batch seconds, files, snapshots and metadata megabytes over the minutes of a run]"
    "(performance/soak.png)"
)
# Seconds since the first commit, and what was seen then.
Points = Sequence[tuple[float, float]]


def growing(results: Results) -> list[str]:
    """Measures that grew: higher in the last third of the run than in the second.

    Batch durations are compared by median, everything else by maximum.
    """
    found = []
    for row in results.table("soak").rows:
        name, (*_, second_third, last_third) = str(row[0]), row[1:]
        if not isinstance(second_third, list) or not isinstance(last_third, list):
            raise ConfigurationError(
                f"the soak has no {name} over its whole time: give it more --minutes"
            )
        which = 0 if name == "batch seconds" else 1
        second, last = second_third[which], last_third[which]
        if last > second * _GROWTH and last - second > _NOISE[name]:
            found.append(f"{name} went from {second:,.2f} to {last:,.2f}")
    return found


BENCHMARK = Benchmark("soak", beyond=growing)


class NotVerified(MillraceError):
    """Records are missing after the soak test."""


def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="Duration in minutes.")] = 30.0,
    rate: Annotated[int, typer.Option(min=1, help="Records per second.")] = 500,
    every: Annotated[str, typer.Option(help="`--every` of `spark-ingest run`.")] = "2s",
    maintain_every: Annotated[str, typer.Option(help="Option of `spark-ingest maintain`.")] = "2m",
    keep: Annotated[str, typer.Option(help="Option of `spark-ingest maintain`.")] = "4m",
    folder: Folder = FOLDER,
) -> Iterator[Results]:
    """Run a stream with frequent commits and concurrent maintenance, and monitor its table.

    Exit codes: 0 bounded and verified, 1 growth or failed verification, 2 usage error.
    """
    check_spark()
    measurement = Measurement(BENCHMARK.name)
    with open_sandbox(folder / f"soak-{os.getpid()}") as home:
        fixture = prepare(home, "bench.soak", 0)
        fixture.clear()
        run = _Run(fixture, rate, every, maintain_every, keep)
        run.measure(minutes * 60)
    summary = (
        f"{run.sent:,} records at {rate} a second, {len(run.batches):,} commits with"
        f" `--every {every}`, {run.rounds} rounds of `maintain --every"
        f" {maintain_every} --keep {keep}`; the stream read its offsets again"
        f" {run.restarts} times; `verify` {'passed' if run.verified else 'FAILED'}"
    )
    yield soaked(seen(run.series()), summary, measurement.about())
    if not run.verified:
        raise NotVerified("spark-ingest verify failed after the soak")


def seen(series: Mapping[str, Points]) -> Results:
    """What was seen of each thing: by thirds of the time, and drawn over minutes."""
    rows = [[name, *_thirds(name, points)] for name, points in series.items()]
    pictures = [
        Axes(
            x="minutes",
            y=name,
            lines=[
                Line(
                    style="." if name == "batch seconds" else "-",
                    points=[
                        (at / 60, value)
                        for at, value in points[:: max(ceil(len(points) / _POINTS), 1)]
                    ],
                )
            ],
        )
        for name, points in series.items()
    ]
    return Results(
        parts={"soak": [_PICTURE, Table(columns=_THIRDS, rows=rows)]},
        plots={"soak.png": Plot(height=4.6, columns=2, axes=pictures)},
    )


def soaked(found: Results, summary: str, about: About) -> Results:
    """What was seen, with what was done and whether anything grew."""
    growth = "; ".join(growing(found)) or "nothing grew with time"
    blocks = [*found.parts["soak"], f"{summary}; {growth}.", about]
    return Results(parts={"soak": blocks}, plots=found.plots)


def _thirds(name: str, points: Points) -> list[Cell]:
    """Of each third of the time the median and the most, in whole numbers where it counts."""
    end = max((at for at, _ in points), default=0.0)
    values: list[list[float]] = [[], [], []]
    for at, value in points:
        values[min(int(3 * at / end), 2) if end else 0].append(value)
    counts = name in {"files", "snapshots"}
    return [
        [round(each) if counts else each for each in (median(part), max(part))] if part else ""
        for part in values
    ]


@dataclass(frozen=True)
class Sample:
    """A table at a moment.

    Attributes:
        at: Seconds since the first commit.
        files: Data files of its newest snapshot.
        snapshots: That its metadata names.
        metadata_bytes: All that is in its metadata folder.
    """

    at: float
    files: int
    snapshots: int
    metadata_bytes: int


class _Run:
    """A stream, its maintenance and its producer, watched."""

    def __init__(
        self, fixture: Fixture, rate: int, every: str, maintain_every: str, keep: str
    ) -> None:
        self.sent = 0
        self.samples: list[Sample] = []
        self.batches: list[tuple[float, float]] = []
        self.restarts = 0
        self.rounds = 0
        self.verified = False
        self._fixture = fixture
        self._pool = payloads(fixture.shape, 1, fixture.ids)
        self._rate = rate
        self._every = every
        self._upkeep = ("--every", maintain_every, "--keep", keep)

    def measure(self, seconds: float) -> None:
        """Run them until the time is over, then let the stream finish, and verify."""
        fixture = self._fixture
        manifest = fixture.folder / "manifest.json"
        write_manifest(manifest, {TABLE: fixture.topic})
        logs = fixture.home.logs
        stream = run_command(manifest, "--every", self._every)
        upkeep = ingest_command(manifest, "maintain", *self._upkeep, "--format", "json")
        with running(stream, fixture.home, logs / "soak-run.log") as program:
            with Sender(fixture.home.bootstrap_servers, self._rate, self._record) as sender:
                wait_for(lambda: self._look(0) is not None, program, _START_SECONDS)
                say(f"running for {seconds / 60:.0f} minutes")
                with running(upkeep, fixture.home, logs / "maintain.log") as maintained:
                    begin = time.time()
                    while (elapsed := time.time() - begin) < seconds:
                        program.check("spark-ingest run")
                        maintained.check("spark-ingest maintain")
                        sample = self._look(elapsed)
                        if sample is not None:
                            self.samples.append(sample)
                        time.sleep(_LOOK_SECONDS)
                    maintained.stop(_LAST_SECONDS)
            self.sent = sender.sent
            wait_for(lambda: self._landed() >= self.sent, program, _LAST_SECONDS)
            program.stop(_LAST_SECONDS)
        self._read(program, begin, seconds)
        self.rounds = sum(line.startswith("[") for _, line in maintained.output.lines)
        verify = ingest_command(manifest, "verify")
        with running(verify, fixture.home, logs / "verify.log") as proof:
            self.verified = proof.popen.wait(_START_SECONDS) == 0

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """What must stay bounded, each over seconds since the first commit."""
        return {
            "batch seconds": self.batches,
            "files": [(one.at, float(one.files)) for one in self.samples],
            "snapshots": [(one.at, float(one.snapshots)) for one in self.samples],
            "metadata MB": [(one.at, round(one.metadata_bytes / 2**20, 2)) for one in self.samples],
        }

    def _record(self, number: int) -> Record:
        ((_, key, value, _),) = records_of(self._pool, number, 1)
        return self._fixture.topic, number % self._fixture.partitions, key, value

    def _look(self, at: float) -> Sample | None:
        """The table now; None while it has no rows, or while its metadata is being removed."""
        found = metadata(self._fixture.catalog, f"{SCHEMA}.{TABLE}")
        if found is None:
            return None
        heads = (s for s in found["snapshots"] if s["snapshot-id"] == _head(found))
        head = next(heads, None)
        files = int(head["summary"].get("total-data-files", 0)) if head else 0
        if not files:
            return None
        folder = Path(unquote(urlsplit(found["location"]).path)) / "metadata"
        return Sample(
            at=round(at, 1),
            files=files,
            snapshots=len(found["snapshots"]),
            metadata_bytes=sum(_size(file) for file in folder.iterdir()),
        )

    def _landed(self) -> int:
        """Offsets that are committed, by the newest own snapshot."""
        found = metadata(self._fixture.catalog, f"{SCHEMA}.{TABLE}") or {"snapshots": []}
        ends = [
            sum(json.loads(s["summary"]["millrace.end-offsets"]).values())
            for s in found["snapshots"]
            if "millrace.end-offsets" in s["summary"]
        ]
        return max(ends, default=0)

    def _read(self, program: Program, begin: float, seconds: float) -> None:
        for at, line in program.output.lines:
            self.restarts += "reading its offsets again" in line
            if line.startswith("{") and 0 <= at - begin <= seconds:
                batch = json.loads(line)
                self.batches.append((round(at - begin, 1), batch["seconds"]))


def _head(found: dict[str, object]) -> object:
    return found.get("current-snapshot-id")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        # Each commit removes the oldest.
        return 0


if __name__ == "__main__":
    BENCHMARK.run(soak)
