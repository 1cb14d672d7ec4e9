"""End-to-end latency at a steady rate: from producing a record until a reader sees it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.ingest.fill import Record, Sender
from bench.ingest.fixture import SCHEMA, Fixture, prepare, write_manifest
from bench.ingest.load import payloads
from bench.ingest.system_run import running, wait_for
from bench.ingest.systems import TABLE, run_command
from bench.ingest.usage import percentile, usage
from bench.ingest.watch import Seen, Watch
from bench.report.results import Cell
from sandbox.settings import Home
from sandbox.ui import say

RATE = 500
EVERY = ("1s", "1ms")
COLUMNS = {
    "`--every`": 0,
    "p50, s": 2,
    "p95, s": 2,
    "p99, s": 2,
    "records": 0,
    "commits": 0,
    "cores": 2,
}
_LOOK_SECONDS = 0.01
# A JVM that has just started is slow: these do not count.
_WARM_SECONDS = 20.0
_START_SECONDS = 300.0
_LAST_SECONDS = 120.0
_ENDS = "millrace.end-offsets"


@dataclass(frozen=True)
class Produced:
    """A record, by its place in its partition.

    Attributes:
        partition: Its partition; its offset is its place in the list of that one.
        at: When it was handed to the producer, seconds since 1970.
    """

    partition: int
    at: float


def measure(home: Home, seconds: float) -> Iterator[list[Cell]]:
    """Measure each setting of `--every`.

    Args:
        home: A sandbox that runs.
        seconds: How long records count, for each.
    """
    each = _WARM_SECONDS + seconds + 60
    say(f"{len(EVERY)} cases: about {len(EVERY) * each / 60:.0f} minutes")
    for every in EVERY:
        fixture = prepare(home, f"bench.latency-{every}", 0)
        done = _measure(fixture, every, seconds)
        say(f"  --every {every}: p95 {done[2]:.2f} s")
        yield done


def waits(produced: list[Produced], seen: list[Seen]) -> list[float]:
    """Latencies in seconds, in ascending order, for all records that were seen.

    Args:
        produced: In the order in which they were produced.
        seen: States of the table, in order; each says where it ends in each partition.
    """
    times: dict[int, list[float]] = {}
    for record in produced:
        times.setdefault(record.partition, []).append(record.at)
    waited = []
    begins: dict[str, int] = {}
    for state in seen:
        ends: dict[str, int] = json.loads(state.summary.get(_ENDS, "{}"))
        for partition, end in ends.items():
            since = times.get(int(partition), [])[begins.get(partition, 0) : end]
            waited += [state.at - at for at in since if at > 0]
        begins |= ends
    return sorted(waited)


def _measure(fixture: Fixture, every: str, seconds: float) -> list[Cell]:
    fixture.clear()
    manifest = fixture.folder / "manifest.json"
    write_manifest(manifest, {TABLE: fixture.topic})
    watch = Watch(fixture.catalog, f"{SCHEMA}.{TABLE}", _LOOK_SECONDS)
    log = fixture.home.logs / f"latency-{every}.log"
    pool = payloads(fixture.shape, 1, fixture.ids)
    produced: list[Produced] = []

    def record(number: int) -> Record:
        partition = number % fixture.partitions
        produced.append(Produced(partition, time.time()))
        return fixture.topic, partition, b"r-%016d" % number, pool[number % len(pool)]

    with running(run_command(manifest, "--every", every), fixture.home, log) as program:
        with Sender(fixture.home.bootstrap_servers, RATE, record):
            wait_for(lambda: watch.records > 0, program, _START_SECONDS)
            time.sleep(_WARM_SECONDS)
            begin = time.time()
            time.sleep(seconds)
            end = time.time()
        wait_for(lambda: watch.records >= len(produced), program, _LAST_SECONDS)
        program.stop(_LAST_SECONDS)
    seen = watch.stop()
    # Those outside the time that counts keep their places, not their times.
    counted = [
        each if begin <= each.at <= end else Produced(each.partition, 0.0) for each in produced
    ]
    ordered = waits(counted, seen)
    commits = sum(begin <= state.at <= end for state in seen)
    cores = usage(program.samples, begin, end).cpu_seconds / (end - begin)
    p50, p95, p99 = (percentile(ordered, share) for share in (0.5, 0.95, 0.99))
    return [f"`{every}`", p50, p95, p99, len(ordered), commits, cores]
