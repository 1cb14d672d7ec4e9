"""A long run of many small commits with maintenance beside it: does anything grow?

::

    python -m bench.soak                  # 30 minutes, a commit every 2 s, 500 records/s
    python -m bench.soak --minutes 3      # does it work?
    python -m bench.soak --write-docs     # and put the results into the docs
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer
from confluent_kafka import Producer

from bench.ingest.contest import Program, running, wait_for
from bench.ingest.contestants import run_command
from bench.ingest.ground import SCHEMA, Ground, open_sandbox, prepare, write_manifest
from bench.ingest.load import payloads
from bench.ingest.load import records as records_of
from bench.ingest.watch import metadata
from bench.report.machine import Measurement
from bench.report.options import OnlyDocs, ResultsFile, WriteDocs
from bench.report.results import write_kept
from bench.report.soak_results import (
    RESULTS,
    Series,
    Soak,
    growing,
    read_soak,
    soak_table,
    write_page,
)
from sandbox.processes import programs
from sandbox.settings import PROJECT
from sandbox.ui import err, say, tell
from spark_ingest.errors import MillraceError
from spark_ingest.lake.preflight import check_spark

TABLE = "soak__receipts"
_START_SECONDS = 300.0
_LAST_SECONDS = 240.0
_LOOK_SECONDS = 5.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class NotBounded(MillraceError):
    """Something grew with time, or a record is missing."""


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long.")] = 30.0,
    rate: Annotated[int, typer.Option(min=1, help="Records a second.")] = 500,
    every: Annotated[str, typer.Option(help="Of `spark-ingest run`.")] = "2s",
    maintain_every: Annotated[
        str, typer.Option(help="Of `spark-ingest maintain`.")
    ] = "2m",
    keep: Annotated[str, typer.Option(help="Of `spark-ingest maintain`.")] = "4m",
    folder: Annotated[
        Path, typer.Option(help="For the sandbox, which is removed at the end.")
    ] = PROJECT / "target" / "bench",
    results: ResultsFile = RESULTS,
    write_docs: WriteDocs = False,
    only_docs: OnlyDocs = False,
) -> None:
    """Let a stream commit every few seconds, with maintenance beside it, and watch its table.

    Exit codes: 0 all stayed bounded and verified, 1 something did not, 2 wrong use.
    """
    if only_docs:
        write_page(read_soak(results))
        return
    check_spark()
    measurement = Measurement("soak")
    with open_sandbox(folder / f"soak-{os.getpid()}") as home:
        ground = prepare(home, "bench.soak", 0)
        ground.clear()
        run = _Run(ground, rate, every, maintain_every, keep)
        run.measure(minutes * 60)
    done = Soak(
        about=measurement.about(),
        rate=rate,
        every=every,
        maintain_every=maintain_every,
        keep=keep,
        sent=run.sent,
        verified=run.verified,
        restarts=run.restarts,
        rounds=run.rounds,
        commits=len(run.batches),
        series={name: Series.of(points) for name, points in run.series().items()},
    )
    write_kept(done, results)
    for line in soak_table(done):
        tell(line)
    say(f"all numbers: {results}")
    if write_docs:
        write_page(done)
    if not done.verified:
        raise NotBounded("spark-ingest verify does not hold after the soak")
    if growth := growing(done):
        raise NotBounded(f"not bounded: {'; '.join(growth)}")


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
        self, ground: Ground, rate: int, every: str, maintain_every: str, keep: str
    ) -> None:
        self.sent = 0
        self.samples: list[Sample] = []
        self.batches: list[tuple[float, float]] = []
        self.restarts = 0
        self.rounds = 0
        self.verified = False
        self._ground = ground
        self._rate = rate
        self._every = every
        self._upkeep = ("--every", maintain_every, "--keep", keep)

    def measure(self, seconds: float) -> None:
        """Run them until the time is over, then let the stream finish, and verify."""
        ground = self._ground
        manifest = ground.folder / "manifest.json"
        write_manifest(manifest, {TABLE: ground.topic})
        logs = ground.home.logs
        stream = run_command(manifest, "--every", self._every)
        upkeep = [*_command(manifest, "maintain"), *self._upkeep, "--format", "json"]
        with running(stream, ground.home, logs / "soak-run.log") as program:
            with self._producing():
                wait_for(lambda: self._look(0) is not None, program, _START_SECONDS)
                say(f"running for {seconds / 60:.0f} minutes")
                with running(upkeep, ground.home, logs / "maintain.log") as maintained:
                    begin = time.time()
                    while (elapsed := time.time() - begin) < seconds:
                        program.check("spark-ingest run")
                        maintained.check("spark-ingest maintain")
                        sample = self._look(elapsed)
                        if sample is not None:
                            self.samples.append(sample)
                        time.sleep(_LOOK_SECONDS)
                    _stop(maintained)
            wait_for(lambda: self._landed() >= self.sent, program, _LAST_SECONDS)
            _stop(program)
        self._read(program, begin, seconds)
        self.rounds = sum(line.startswith("[") for _, line in maintained.said.lines)
        verify = _command(manifest, "verify")
        with running(verify, ground.home, logs / "verify.log") as proof:
            self.verified = proof.popen.wait(_START_SECONDS) == 0

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """What must stay bounded, each over seconds since the first commit."""
        return {
            "batch seconds": self.batches,
            "files": [(one.at, float(one.files)) for one in self.samples],
            "snapshots": [(one.at, float(one.snapshots)) for one in self.samples],
            "metadata MB": [
                (one.at, round(one.metadata_bytes / 2**20, 2)) for one in self.samples
            ],
        }

    @contextmanager
    def _producing(self) -> Iterator[None]:
        stopping = threading.Event()
        sender = threading.Thread(target=self._send, args=(stopping,))
        sender.start()
        try:
            yield
        finally:
            stopping.set()
            sender.join()

    def _send(self, stopping: threading.Event) -> None:
        ground = self._ground
        pool = payloads(ground.shape, 1, ground.ids)
        settings = {"bootstrap.servers": ground.home.bootstrap_servers, "linger.ms": 5}
        producer = Producer({**settings, "log_level": 0})
        begin = time.monotonic()
        while not stopping.is_set():
            due = int((time.monotonic() - begin) * self._rate)
            for number, key, value, _ in records_of(pool, self.sent, due - self.sent):
                producer.produce(ground.topic, value, key, number % ground.partitions)
            self.sent = max(due, self.sent)
            producer.poll(0)
            time.sleep(0.02)
        producer.flush(30)

    def _look(self, at: float) -> Sample | None:
        """The table now; None while it has no rows, or while its metadata is being removed."""
        found = metadata(self._ground.catalog, f"{SCHEMA}.{TABLE}")
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
        found = metadata(self._ground.catalog, f"{SCHEMA}.{TABLE}") or {"snapshots": []}
        ends = [
            sum(json.loads(s["summary"]["millrace.end-offsets"]).values())
            for s in found["snapshots"]
            if "millrace.end-offsets" in s["summary"]
        ]
        return max(ends, default=0)

    def _read(self, program: Program, begin: float, seconds: float) -> None:
        for at, line in program.said.lines:
            self.restarts += "reading its offsets again" in line
            if line.startswith("{") and 0 <= at - begin <= seconds:
                told = json.loads(line)
                self.batches.append((round(at - begin, 1), told["seconds"]))


def _command(manifest: Path, name: str) -> list[str]:
    return [programs.path_of("spark-ingest"), "--manifest", str(manifest), name]


def _stop(program: Program) -> None:
    """Let it finish what it does; what takes longer is killed, and must have done no harm."""
    program.popen.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        program.popen.wait(_LAST_SECONDS)


def _head(found: dict[str, object]) -> object:
    return found.get("current-snapshot-id")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        # Each commit removes the oldest.
        return 0


def main() -> None:
    """Run the command; a mistake that a person can mend is one line on standard error."""
    try:
        app()
    except MillraceError as error:
        err.print(f"bench.soak: {error}", markup=False, highlight=False)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
