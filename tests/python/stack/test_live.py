"""`sandbox live` as a person runs it: events reach the marts, and all of it ends.

Fails when `sandbox live` stops updating the marts, or leaves a process.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from sandbox.settings import PROJECT
from tests.python.conftest import Stack
from tests.python.stack.conftest import DemoRun, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Far more than it takes on a machine of one's own.
SECONDS = 600
ROUND = re.compile(
    r"round (\d+): [\d.]+ s, ([+-][\d,]+) rows in marts, age ([\d.]+) s"
    r" \(fct_rental_sales [\d.]+ s, fct_purchases_enriched [\d.]+ s\),"
    r" ingest lag ([\d,]+)$",
    re.MULTILINE,
)
# Each sale once, each purchase line: as far as the marts say that they have read.
EXPECTED = """
select
    (select count(distinct payment_id) from intermediate.int_rentals__sales_enriched
     where _commit_id <= (
         select read_to from state.read_points
         where model_name = 'marts.fct_rental_sales' and source_name = 'pagila.sales')),
    (select count(*) from intermediate.int_smoothies__purchases_checked
     where _commit_id <= (
         select read_to from state.read_points
         where model_name = 'marts.fct_purchases_enriched'
             and source_name = 'smoothies.purchases'))
"""
HELD = """
select
    (select count(*) from marts.fct_rental_sales),
    (select count(*) from marts.fct_purchases_enriched)
"""


@contextmanager
def living(stack: Stack, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`sandbox live` in a process group of its own, as a terminal starts it."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "sandbox"), "live", *options],
            cwd=PROJECT,
            env=stack.env,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(SECONDS)


def started_by(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.nightly
def test_events_reach_the_marts_until_ctrl_c_and_nothing_stays_running(
    stack: Stack, demo: DemoRun, spark: SparkSession, tmp_path: Path
) -> None:
    before = spark.sql(HELD).first()
    log = tmp_path / "live.log"

    with living(stack, log, "--rate", "100/s") as process:
        wait_for(lambda: len(ROUND.findall(log.read_text())) > 1, SECONDS)
        started = started_by(process)
        refused = stack.run("sandbox", "demo", "--count", "2", check=False)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(SECONDS)

    _, alive = psutil.wait_procs(started, 10)
    reported = log.read_text()
    assert (code, alive) == (0, []), reported
    assert len(started) >= 6  # producers, ingest, rounds, and a JVM for both of these
    assert refused.returncode == 2
    assert f"`sandbox live` (pid {process.pid})" in " ".join(refused.stderr.split())
    rounds = ROUND.findall(reported)
    assert [number for number, *_ in rounds[:2]] == ["1", "2"]
    assert all(0 < float(age) < SECONDS for _, _, age, _ in rounds)
    assert re.search(r"^\d+ rounds: the first took [\d.]+ s; the others", reported, re.MULTILINE)
    held = spark.sql(HELD).first()
    assert held == spark.sql(EXPECTED).first()
    assert before is not None
    assert held is not None
    assert all(after > then for after, then in zip(held, before, strict=True))
    # What ran before still runs.
    assert stack.run("sandbox", "status").returncode == 0


def test_a_program_that_dies_ends_all_with_one_line_that_names_it(
    stack: Stack, demo: DemoRun, tmp_path: Path
) -> None:
    log = tmp_path / "live.log"

    def ingest(process: subprocess.Popen[bytes]) -> psutil.Process | None:
        for one in started_by(process):
            # One that ends just now shows no command line.
            with suppress(psutil.NoSuchProcess):
                if any(part.endswith("/spark-ingest") for part in one.cmdline()):
                    return one
        return None

    with living(stack, log, "--minutes", "5") as process:
        victim = wait_for(lambda: ingest(process))
        started = started_by(process)
        victim.kill()
        code = process.wait(SECONDS)

    _, alive = psutil.wait_procs(started, 10)
    reported = log.read_text()
    assert (code, alive) == (1, []), reported
    assert "error: ingest ended with exit code -9: " in reported
    assert f"its log is {stack.home.logs / 'live-ingest.log'}" in reported
    assert "Traceback" not in reported
