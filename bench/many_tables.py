"""What a thousand tables commit and store: measured on a few, simulated for many.

::

    python -m bench.many_tables                 # about five minutes
    python -m bench.many_tables --quick         # does it work?
    python -m bench.many_tables --write-docs    # and put the results into the docs

Two things are measured: how often writers of one table collide, and how the metadata of a table
grows with its commits. A simulation repeats both, is compared with them, and goes on to many
tables, all of which share one table: the commit log.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.increments.worker import prepare as prepare_folder
from bench.ingest.fill import Record, Sender
from bench.ingest.fixture import SCHEMA, Fixture, open_sandbox, prepare, write_manifest
from bench.ingest.load import payloads
from bench.ingest.system_run import running
from bench.ingest.systems import TABLE, run_command
from bench.ingest.watch import metadata, metadata_file, path_of
from bench.report.machine import Measurement
from bench.report.results import Cell, Results, Table
from bench.run import FOLDER, Benchmark, Folder, Quick
from sandbox.install import spark_conf
from sandbox.settings import Home
from sandbox.ui import say
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import Jvm

BENCHMARK = Benchmark(
    "many_tables",
    trial=lambda options: "quick-many-tables.json" if options["quick"] else None,
)
# Writers of one table, and the seconds between two commits of each.
WRITERS = (1, 2, 4, 8)
PERIOD = 0.5
# Processes of a lake; each commits its streams' rows to the log every five seconds.
PROCESSES = (10, 50, 200, 1000)
LOG_PERIOD = 5.0
# Seconds of a commit: as measured here, and of catalogs that answer more slowly.
SLOWER = (0.5, 2.0)
# Streams, and the value of `--every` in seconds.
FLEETS = ((300, 10), (1000, 10), (1000, 60))
_CORES = 2
_SIMULATED_SECONDS = 600.0
_TABLE = f"{SCHEMA}.shared"
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Contention:
    """Commits of some writers to one table.

    Attributes:
        rate: Commits per second.
        attempts: Attempts per commit.
        seconds: Median time from the moment when a commit was due until it succeeded.
    """

    rate: float
    attempts: float
    seconds: float


@dataclass(frozen=True)
class Growth:
    """Bytes that the metadata of a table has after some commits.

    Attributes:
        commits: Snapshots in the table.
        table_bytes: Size of the newest metadata file.
        list_bytes: Size of the newest manifest list.
    """

    commits: int
    table_bytes: int
    list_bytes: int


def many_tables(folder: Folder = FOLDER, quick: Quick = False) -> Iterator[Results]:
    """Measure collisions and metadata on one table, and simulate them for many.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    seconds, commits = (3.0, 40) if quick else (20.0, 400)
    measurement = Measurement(BENCHMARK.name)
    growth = list(grown(folder / f"many-tables-{os.getpid()}", commits))
    measured = contended(folder / f"many-tables-{os.getpid()}-lake", seconds)
    alone = measured[0].seconds
    about = measurement.about()
    yield Results(
        parts={
            "contention": [_contention(measured, alone), about],
            "contention_many": [_shared_log(alone)],
            "growth": [_growth(growth), about],
            "growth_many": [_fleets(growth)],
        }
    )


def simulated(
    writers: int, period: float, commit_seconds: float, seconds: float, cores: int | None = None
) -> Contention:
    """Simulate writers that commit to one table, each with the retries of ``change_table``.

    Args:
        writers: How many.
        period: Mean seconds between two commits of one of them; it is late if one takes longer.
        commit_seconds: Seconds of an attempt, from reading the table until the catalog answers.
        seconds: The simulated time.
        cores: The writers share so many; None if they have enough.
    """
    chance = random.Random(writers)
    version = attempts = running_now = 0
    waits: list[float] = []
    # When, a number that keeps the order, the writer's due time, its conflicts, and the version
    # that its attempt is based on; None if an attempt is to begin.
    events: list[tuple[float, int, float, int, int | None]] = []
    for number in range(writers):
        due = chance.uniform(0, period)
        heapq.heappush(events, (due, number, due, 0, None))
    serial = writers
    while events:
        now, _, due, conflicts, base = heapq.heappop(events)
        if now > seconds:
            break
        serial += 1
        if base is None:
            running_now += 1
            slower = max(1.0, running_now / cores) if cores else 1.0
            end = now + commit_seconds * slower
            heapq.heappush(events, (end, serial, due, conflicts, version))
            continue
        running_now -= 1
        attempts += 1
        if base != version:
            again = now + chance.uniform(0, table_change.longest_pause(conflicts + 1))
            heapq.heappush(events, (again, serial, due, conflicts + 1, None))
            continue
        version += 1
        waits.append(now - due)
        due = max(now, due + _pause(chance, period))
        heapq.heappush(events, (due, serial, due, 0, None))
    return Contention(len(waits) / seconds, attempts / len(waits), median(waits))


def _pause(chance: random.Random, period: float) -> float:
    """Seconds between two commits: writers that keep in step would collide always, or never."""
    return chance.uniform(0.5, 1.5) * period


def contended(folder: Path, seconds: float) -> list[Contention]:
    """Let each number of ``WRITERS`` commit to one table of a lake.

    Args:
        folder: The lake's; it is removed.
        seconds: How long each number commits.
    """
    home = Home(folder.resolve())
    prepare_folder(folder)
    spark_conf.render(home, home.spark_conf)
    os.environ["SPARK_CONF_DIR"] = str(home.spark_conf)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("many tables").getOrCreate()
    try:
        spark.sql(f"create namespace if not exists lake.{SCHEMA}")
        # Iceberg's own retries would hide conflicts from those that count them.
        properties = "tblproperties ('commit.retry.num-retries' = '0')"
        spark.sql(f"create table lake.{_TABLE} (id bigint) using iceberg {properties}")
        jvm = Jvm(spark)
        # A JVM that has just started is slow.
        _contended(jvm, 2, seconds / 3)
        found = []
        for writers in WRITERS:
            found.append(_contended(jvm, writers, seconds))
            say(f"  {writers} writers: {found[-1].attempts:.2f} attempts per commit")
        return found
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _contended(jvm: Jvm, writers: int, seconds: float) -> Contention:
    attempts = 0
    counting = threading.Lock()
    begin = time.monotonic()

    def plan(iceberg: Any) -> table_change.Step:
        nonlocal attempts
        with counting:
            attempts += 1
        return table_change.commit_of(iceberg.newAppend())

    def write(number: int) -> list[float]:
        waits, chance = [], random.Random(number)
        due = begin + chance.uniform(0, PERIOD)
        while due < begin + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            table_change.change_table(jvm, _TABLE, plan)
            waits.append(time.monotonic() - due)
            due = max(time.monotonic(), due + _pause(chance, PERIOD))
        return waits

    with ThreadPoolExecutor(writers) as threads:
        waits = [each for of_one in threads.map(write, range(writers)) for each in of_one]
    return Contention(len(waits) / seconds, attempts / len(waits), median(waits))


def grown(folder: Path, commits: int) -> Iterator[Growth]:
    """Let ingest commit to a table, and look at its metadata after each eighth of the commits."""
    with open_sandbox(folder) as home:
        fixture = prepare(home, "bench.many", 0)
        fixture.clear()
        manifest = fixture.folder / "manifest.json"
        write_manifest(manifest, {TABLE: fixture.topic})
        pool = payloads(fixture.shape, 1, fixture.ids)

        def record(number: int) -> Record:
            key = b"r-%016d" % number
            return fixture.topic, number % fixture.partitions, key, pool[number % len(pool)]

        command, log = run_command(manifest, "--every", "1ms"), home.logs / "many.log"
        with running(command, home, log) as program, Sender(home.bootstrap_servers, 100, record):
            for wanted in range(commits // 8, commits + 1, commits // 8):
                while _snapshots(fixture) < wanted:
                    program.check("spark-ingest")
                    time.sleep(0.05)
                seen = _growth_of(fixture)
                say(f"  {seen.commits} commits: {seen.table_bytes / 1000:.0f} kB of metadata")
                yield seen


def _snapshots(fixture: Fixture) -> int:
    found = metadata(fixture.catalog, f"{SCHEMA}.{TABLE}")
    return 0 if found is None else len(found["snapshots"])


def _growth_of(fixture: Fixture) -> Growth:
    while True:
        file = metadata_file(fixture.catalog, f"{SCHEMA}.{TABLE}")
        try:
            text = file.read_text() if file else "{}"
        except FileNotFoundError:
            # Commits delete old metadata files: a newer one is there.
            continue
        snapshots = json.loads(text)["snapshots"]
        lists = path_of(snapshots[-1]["manifest-list"])
        return Growth(len(snapshots), len(text.encode()), lists.stat().st_size)


def bytes_of(growth: list[Growth]) -> tuple[float, float]:
    """The bytes of a metadata file without snapshots, and of each snapshot in it.

    By the first half of what was measured.
    """
    half = growth[: len(growth) // 2]
    first, last = half[0], half[-1]
    each = (last.table_bytes - first.table_bytes) / (last.commits - first.commits)
    return first.table_bytes - each * first.commits, each


def _contention(measured: list[Contention], alone: float) -> Table:
    columns = {
        "writers": 0, "commits/s": 1, "attempts per commit": 2, "seconds of a commit": 3,
        "simulated: commits/s": 1, "attempts": 2, "seconds": 3,
    }  # fmt: skip
    rows: list[list[Cell]] = []
    for writers, seen in zip(WRITERS, measured, strict=True):
        model = simulated(writers, PERIOD, alone, _SIMULATED_SECONDS, _CORES)
        numbers = [each for of in (seen, model) for each in (of.rate, of.attempts, of.seconds)]
        rows.append([writers, *numbers])
    return Table(columns=columns, rows=rows)


def _shared_log(alone: float) -> Table:
    columns = {
        "processes": 0, "seconds of a commit": 3, "commits/s wanted": 1, "commits/s": 1,
        "attempts per commit": 1, "seconds between two commits of a process": 0,
    }  # fmt: skip
    rows: list[list[Cell]] = []
    for commit_seconds in (alone, *SLOWER):
        for processes in PROCESSES:
            of = simulated(processes, LOG_PERIOD, commit_seconds, _SIMULATED_SECONDS)
            wanted, each = processes / LOG_PERIOD, processes / of.rate
            rows.append([processes, commit_seconds, wanted, of.rate, of.attempts, each])
    return Table(columns=columns, rows=rows)


def _growth(growth: list[Growth]) -> Table:
    base, each = bytes_of(growth)
    columns = {
        "commits": 0, "metadata file, kB": 1, "by the first half, kB": 1, "manifest list, kB": 1,
    }  # fmt: skip
    rows: list[list[Cell]] = [
        [
            seen.commits,
            seen.table_bytes / 1000,
            (base + each * seen.commits) / 1000,
            seen.list_bytes / 1000,
        ]
        for seen in growth
    ]
    return Table(columns=columns, rows=rows)


def _fleets(growth: list[Growth]) -> Table:
    base, each = bytes_of(growth)
    lists = median(seen.list_bytes for seen in growth)
    columns = {
        "streams": 0, "`--every`, s": 0, "`maintain` keeps snapshots of": 0,
        "commits an hour": 0, "metadata file of a table, kB": 0, "metadata written a day, GB": 0,
    }  # fmt: skip
    rows: list[list[Cell]] = []
    for streams, every in FLEETS:
        for hours in (1, 24):
            kept = hours * 3600 / every
            size = base + each * kept
            written = streams * _SECONDS_A_DAY / every * (size + lists)
            name = "1 hour" if hours == 1 else f"{hours} hours"
            numbers = (round(streams * 3600 / every), size / 1000, written / 1e9)
            rows.append([streams, every, name, *numbers])
    return Table(columns=columns, rows=rows)


if __name__ == "__main__":
    BENCHMARK.run(many_tables)
