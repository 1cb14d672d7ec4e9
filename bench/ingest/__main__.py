"""Ingest throughput from Kafka to a table: Millrace, its upper limits and its peers.

::

    python -m bench.ingest                                  # all systems
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
from bench.ingest.fixture import open_sandbox, prepare
from bench.ingest.peer_systems import Connect, PythonConsumer, RawConsumer
from bench.ingest.system_run import System, run
from bench.ingest.systems import CarelessJob, Millrace, SparkDecode
from bench.report.machine import Measurement
from bench.report.results import Results, Table
from bench.run import FOLDER, Benchmark, Folder
from sandbox.settings import Home
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.preflight import check_spark

MOST_LOAD = 1.0
# A record on the broker, and at worst also in a table.
_BYTES_EACH = 400
# Fixed cost of a run: JVM startup, and counting the rows.
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
    records: Annotated[
        int, typer.Option(min=1000, help="Number of records in the topic.")
    ] = 5_000_000,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs per system; the median is reported.")
    ] = 3,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only systems whose name contains this. Repeatable."),
    ] = None,
    scaling: Annotated[
        bool,
        typer.Option("--scaling", help="Measure scaling instead: partitions, records, executors."),
    ] = False,
    latency: Annotated[
        bool, typer.Option("--latency", help="Measure end-to-end latency instead.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Measure many streams with few records instead.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(help="Duration of each case of --latency and --quiet.")
    ] = 60.0,
    folder: Folder = FOLDER,
    run_options: Annotated[
        str, typer.Option(help="Additional options of `spark-ingest run`, for experiments.")
    ] = "",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Measure even though the machine is busy.")
    ] = False,
) -> Iterator[Results]:
    """Compare systems that read records from Kafka into a table.

    The systems run in turn on one topic, each in its own process, with the broker
    on the same machine.

    Exit codes: 0 success, 1 a system failed, 2 usage error or busy machine.
    """
    if scaling + latency + quiet > 1:
        raise ConfigurationError("give one of --scaling, --latency and --quiet")
    systems = chosen(only or [], shlex.split(run_options))
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
            runs, load = compare(home, systems, records, repeats)
            done = shown.comparison(runs, load, measurement.about())
    yield done


def compare(
    home: Home, systems: list[System], records: int, repeats: int
) -> tuple[dict[str, list[shown.Run]], shown.Load]:
    """Run all systems on one topic, in turn.

    Args:
        home: A running sandbox.
        systems: The systems to run.
        records: Number of records in the topic.
        repeats: Runs per system.

    Returns:
        The runs by system, and the load.
    """
    rounds = repeats * len(systems)
    minutes = ceil(rounds * (_START_SECONDS + records / _SLOW_RATE) / 60)
    say(f"{rounds} runs of {records:,} records: {minutes} minutes at most")
    fixture = prepare(home, "bench.receipts", records)
    runs: dict[str, list[shown.Run]] = {each.name: [] for each in systems}
    for number in range(repeats):
        # Each round starts with another system.
        first = number % len(systems)
        for system in systems[first:] + systems[:first]:
            time.sleep(_REST_SECONDS)
            done = run(system, fixture)
            runs[system.name].append(done)
            say(_line(system.name, number + 1, done))
    return runs, shown.Load(fixture.sent, len(fixture.fields), fixture.partitions)


def chosen(only: list[str], options: list[str]) -> list[System]:
    """The systems whose names contain one of these words; all if there is none.

    Raises:
        ConfigurationError: No name contains a word.
    """
    every: list[System] = [
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
            raise ConfigurationError(f"--only {word}: no such system; known: {names}")
    return [each for each in every if not only or any(word in each.name for word in only)]


def _check(folder: Path, records: int, anyway: bool) -> None:
    """Check that the machine is idle and has enough disk space."""
    check_spark()
    load = os.getloadavg()[0]
    if load > MOST_LOAD and not anyway:
        raise ConfigurationError(
            f"the machine is busy (load {load:.1f}, limit {MOST_LOAD:.0f}): wait until it is idle,"
            " or use --anyway and do not trust the numbers"
        )
    folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(folder).free, records * _BYTES_EACH
    if free < needed:
        raise ConfigurationError(
            f"{folder} has {free >> 20} MiB free, {needed >> 20} MiB are needed:"
            " free disk space, or use fewer --records"
        )


def _line(name: str, number: int, done: shown.Run) -> str:
    return (
        f"  {number}. {name}: {done.rate:,.0f} records/s,"
        f" {done.cpu_seconds_per_million:.2f} CPU s/M, {done.peak_rss_mb:,.0f} MB,"
        f" load {done.load:.1f}; loses {done.loses}"
    )


if __name__ == "__main__":
    BENCHMARK.run(ingest)
