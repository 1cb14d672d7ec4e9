"""dbt increments of some histories and their live views, in a process that keeps its Spark.

A program of its own: rounds follow one another, and it prints a line of JSON after each. On SIGTERM
it ends after the current round, and reports for each change in bronze when its database
committed it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.capture.events import CHANGES, READY, ROUND, say
from sandbox.settings import PROJECT, Home, load_home
from sandbox.tour.query import open_lake
from spark_ingest.errors import MillraceError
from spark_ingest.lake.session import silence_statement_log

_NO_TESTS = ("--exclude-resource-type", "test", "unit_test")
_READ = """
select source_name, min(read_to) from state.read_points
where source_name in ({}) group by source_name
"""
# A change and its tombstone are two records of one commit: the tombstone has no time.
_TIMES = """
select _commit_id, __source_ts_ms, count(*) from bronze.{}
where not _is_tombstone and coalesce(__op, '') <> 'r' group by all
"""


class BuildFailed(MillraceError):
    """dbt did not build the histories."""


def main(streams: dict[str, str], models: list[str]) -> None:
    """Build all once, then increments until stopped.

    Args:
        streams: Bronze tables without their schema, by dbt's names of the sources.
        models: Histories and live views.
    """
    _give_way()
    home = load_home()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: stopping.set())
    spark = open_lake(home, "bench.capture")
    silence_statement_log()
    manifest = _dbt(home, None, "parse")
    _dbt(home, manifest, "build", *_NO_TESTS, "--select", *(f"+{m}" for m in models))
    say(READY)
    names = ", ".join(f"'{name}'" for name in streams)
    while not stopping.is_set():
        begun = time.time()
        _dbt(home, manifest, "run", "--select", *models)
        read = {row[0]: row[1] for row in spark.sql(_READ.format(names)).collect()}
        say(ROUND, at=time.time(), seconds=time.time() - begun, read=read)
    for name, table in streams.items():
        rows = spark.sql(_TIMES.format(table)).collect()
        say(CHANGES, stream=name, rows=[list(row) for row in rows])


def _give_way() -> None:
    """Let all else on the machine go first, as a build beside other work should.

    Where Linux shares the processors among sessions, a process is nice to those of its own session
    alone: the session has a nice value, too (``man 7 sched``, "the autogroup feature").
    """
    os.nice(19)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")


def _dbt(home: Home, manifest: Any, *words: str) -> Any:
    from dbt.cli.main import dbtRunner

    done = dbtRunner(manifest=manifest).invoke(
        [
            "--quiet",
            *("--log-path", str(home.logs / "rounds-dbt")),
            "--cache-selected-only",
            "--no-write-json",
            *words,
            *("--target-path", str(home.path / "rounds-target")),
        ]
    )
    if not done.success:
        raise BuildFailed(f"`dbt {' '.join(words)}` failed: see {home.logs}/rounds-dbt")
    return done.result


if __name__ == "__main__":
    os.chdir(PROJECT)
    main(json.loads(sys.argv[1]), sys.argv[2:])
