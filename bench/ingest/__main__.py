"""How fast records come from Kafka into a table: our engine, its limits, its peers.

::

    python -m bench.ingest                                  # all contestants
    python -m bench.ingest --only millrace --only careless --records 2000000 --repeats 2
    python -m bench.ingest --scaling                        # or --latency, or --quiet
    python -m bench.ingest --only-docs                      # write the docs from the results
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Annotated

import typer

from bench.ingest import latency as latencies
from bench.ingest import quiet as quiet_streams
from bench.ingest import results as shown
from bench.ingest import scaling as cases
from bench.ingest.contest import Contestant, run
from bench.ingest.contestants import CarelessJob, Millrace, SparkDecode
from bench.ingest.ground import open_sandbox, prepare
from bench.ingest.peers_contest import Connect, PythonConsumer, RawConsumer
from bench.report.machine import Measurement
from bench.report.results import Results, Table
from bench.run import FOLDER, Benchmark, Folder
from sandbox.settings import Home
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.preflight import check_spark

MOST_LOAD = 1.0
# A record on the broker and, at worst, in a table beside it.
_BYTES_EACH = 400
# What a run costs besides its records: a JVM, and counting what landed.
_START_SECONDS = 25.0
_SLOW_RATE = 60_000
_REST_SECONDS = 3.0

BENCHMARK = Benchmark(
    "ingest",
    "make bench",
    trial=lambda options: "ingest-part.json" if options["only"] or options["run_options"] else None,
    adds=True,
)


def ingest(
    records: Annotated[int, typer.Option(min=1000, help="Records of the topic.")] = 5_000_000,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs of each contestant; the median counts.")
    ] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Contestants whose name has this in it; may be repeated."),
    ] = None,
    scaling: Annotated[
        bool, typer.Option("--scaling", help="Instead: partitions, records, executors.")
    ] = False,
    latency: Annotated[
        bool, typer.Option("--latency", help="Instead: end-to-end latency.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Instead: many streams, few records.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(help="How long --latency and --quiet look at each case.")
    ] = 60.0,
    folder: Folder = FOLDER,
    run_options: Annotated[
        str, typer.Option(help="More options of `spark-ingest run`, for trials.")
    ] = "",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Measure though the machine is at work.")
    ] = False,
) -> Iterator[Results]:
    """Measure what takes records from Kafka to a table, each in a process of its own.

    The contestants take turns on one topic, with the broker on the same machine.

    Exit codes: 0 measured, 1 a contestant failed, 2 wrong use or a machine at work.
    """
    if scaling + latency + quiet > 1:
        raise ConfigurationError("give one of --scaling, --latency and --quiet")
    contestants = chosen(only or [], shlex.split(run_options))
    _check(folder, records * cases.MOST_TIMES if scaling else records, anyway)
    measurement = Measurement(BENCHMARK.name)
    with open_sandbox(folder / f"ingest-{os.getpid()}") as home:
        if scaling:
            found = list(cases.measure(home, records))
            done = shown.scaling(found, measurement.about())
        elif latency or quiet:
            what = latencies if latency else quiet_streams
            table = Table(columns=what.COLUMNS, rows=list(what.measure(home, seconds)))
            name = "ingest_latency" if latency else "ingest_quiet"
            done = Results(parts={name: [table, measurement.about()]})
        else:
            runs, load = compete(home, contestants, records, repeats)
            done = shown.contest(runs, load, measurement.about())
    yield done


def compete(
    home: Home, contestants: list[Contestant], records: int, repeats: int
) -> tuple[dict[str, list[shown.Run]], shown.Load]:
    """Let all contestants take one topic, in turns.

    Args:
        home: A sandbox that runs.
        contestants: Who takes part.
        records: Of the topic.
        repeats: Runs of each.

    Returns:
        The runs by contestant, and what was sent.
    """
    rounds = repeats * len(contestants)
    minutes = ceil(rounds * (_START_SECONDS + records / _SLOW_RATE) / 60)
    say(f"{rounds} runs of {records:,} records: {minutes} minutes at most")
    ground = prepare(home, "bench.receipts", records)
    runs: dict[str, list[shown.Run]] = {each.name: [] for each in contestants}
    for number in range(repeats):
        # Another one first each time.
        first = number % len(contestants)
        for contestant in contestants[first:] + contestants[:first]:
            time.sleep(_REST_SECONDS)
            done = run(contestant, ground)
            runs[contestant.name].append(done)
            say(_line(contestant.name, number + 1, done))
    return runs, shown.Load(ground.sent, len(ground.fields), ground.partitions)


def chosen(only: list[str], options: list[str]) -> list[Contestant]:
    """The contestants whose names have one of these words in them; all without any.

    Raises:
        ConfigurationError: A word is in no name.
    """
    every: list[Contestant] = [
        RawConsumer(),
        SparkDecode(),
        Millrace(options),
        CarelessJob(),
        Connect(),
        PythonConsumer(),
    ]
    for word in only:
        if not any(word in each.name for each in every):
            names = ", ".join(each.name for each in every)
            raise ConfigurationError(f"--only {word}: no contestant; there are: {names}")
    return [each for each in every if not only or any(word in each.name for word in only)]


def _check(folder: Path, records: int, anyway: bool) -> None:
    """Refuse what would measure nothing, or fail in the middle."""
    check_spark()
    load = os.getloadavg()[0]
    if load > MOST_LOAD and not anyway:
        raise ConfigurationError(
            f"the machine is at work (load {load:.1f}, {MOST_LOAD:.0f} is the most): wait until"
            " it is quiet, or measure --anyway and do not believe the numbers"
        )
    folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(folder).free, records * _BYTES_EACH
    if free < needed:
        raise ConfigurationError(
            f"{free >> 20} MiB are free where {folder} is, {needed >> 20} are needed:"
            " make room, or send fewer --records"
        )


def _line(name: str, number: int, done: shown.Run) -> str:
    return (
        f"  {number}. {name}: {done.rate:,.0f} records/s,"
        f" {done.cpu_seconds_per_million:.2f} CPU s/M, {done.peak_rss_mb:,.0f} MB,"
        f" load {done.load:.1f}; loses {done.loses}"
    )


if __name__ == "__main__":
    BENCHMARK.run(ingest)
