"""What many streams cost in one process on which little or nothing happens."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from bench.ingest.fill import Record, Sender, make_topic
from bench.ingest.fixture import SCHEMA, free_ports, register, write_manifest
from bench.ingest.load import Shape, payloads
from bench.ingest.system_run import running, wait_for
from bench.ingest.systems import run_command
from bench.ingest.usage import MIB, usage
from bench.ingest.watch import commit_count, metadata, record_count
from bench.report.results import Cell
from sandbox.settings import Home
from sandbox.ui import say

# Streams, records per second of each, and the value of `--every`.
CASES: list[tuple[int, float, str]] = [
    *((1, 0, "1s"), (50, 0, "1s"), (300, 0, "10s")),
    (100, 10, "10s"),
]
COLUMNS = {
    "streams": 0,
    "`--every`": 0,
    "records/s of each": 0,
    "first start, s": 0,
    "restart, s": 0,
    "CPU s a minute": 1,
    "commits a minute": 0,
    "threads": 0,
    "RSS, MiB": 0,
    "records behind": 0,
}
_UP = re.compile(r"^millrace_stream_up\{.*\} 1\.0$", re.MULTILINE)
_PARTITIONS = 1
_START_SECONDS = 900.0
_SETTLE_SECONDS = 30.0


def measure(home: Home, seconds: float) -> Iterator[list[Cell]]:
    """Measure each number of streams.

    Args:
        home: A sandbox that runs.
        seconds: How long each is looked at.
    """
    say(f"{len(CASES)} cases: about {len(CASES) * (seconds + 150) / 60:.0f} minutes")
    for streams, rate, every in CASES:
        done = measure_one(home, streams, rate, every, seconds)
        shown = zip(COLUMNS, done, strict=True)
        say("  " + ", ".join(f"{name.strip('`')} {value}" for name, value in shown))
        yield done


def measure_one(home: Home, streams: int, rate: float, every: str, seconds: float) -> list[Cell]:
    """Measure so many streams.

    Args:
        home: A sandbox that runs.
        streams: How many.
        rate: Records a second of each of them.
        every: For `spark-ingest run --every`.
        seconds: How long.
    """
    name = f"quiet{streams}"
    topics = {f"{name}_{n}": f"bench.{name}-{n}" for n in range(streams)}
    ids = (0, 0)
    for topic in topics.values():
        make_topic(home.bootstrap_servers, topic, _PARTITIONS)
        # The same for all: an id belongs to the text of a schema.
        ids = register(home, topic, Shape())
    manifest = home.path / f"{name}.json"
    write_manifest(manifest, topics)
    catalog = home.lake / "catalog.db"
    log = home.logs / f"{name}.log"
    pool, names = payloads(Shape(), 1, ids), list(topics.values())

    def record(number: int) -> Record:
        topic = names[number % streams]
        return topic, 0, b"r-%016d" % number, pool[number % len(pool)]

    (port,) = free_ports(1)
    command = run_command(manifest, "--every", every, "--metrics-port", str(port))

    def started() -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return len(_UP.findall(answer.read().decode())) == streams
        except (URLError, ConnectionError):
            return False

    def landed() -> int:
        return sum(record_count(metadata(catalog, f"{SCHEMA}.{table}")) for table in topics)

    starts = list[float]()
    # The first start creates the tables.
    for is_restart in (False, True):
        began = time.monotonic()
        with running(command, home, log) as program:
            wait_for(started, program, _START_SECONDS)
            starts.append(time.monotonic() - began)
            if not is_restart:
                program.stop(_START_SECONDS)
                continue
            with Sender(home.bootstrap_servers, rate * streams, record) as sender:
                time.sleep(_SETTLE_SECONDS)
                begin, before = time.time(), commit_count(catalog)
                time.sleep(seconds)
                end, made = time.time(), commit_count(catalog) - before
            started_by = psutil.Process(program.popen.pid).children(recursive=True)
            threads = sum(one.num_threads() for one in started_by)
            # What was sent in the last moments has as long as a batch and a half may take.
            time.sleep(1.5 * float(every.removesuffix("s")) if rate else 0.0)
            behind = sender.sent - landed()
            program.stop(_START_SECONDS)
    took = usage(program.samples, begin, end)
    minutes = took.seconds / 60
    return [
        streams,
        f"`{every}`",
        rate,
        *(round(start) for start in starts),
        took.cpu_seconds / minutes,
        round(made / minutes),
        threads,
        round(took.peak_rss_bytes / MIB),
        max(0, behind),
    ]
