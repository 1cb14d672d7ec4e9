"""`sandbox demo`: the whole way once, from Kafka to the docs, and a report from the tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from textwrap import indent
from typing import IO, TYPE_CHECKING, Any

from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sandbox import parts, process, stack
from sandbox.query import open_lake, write_table
from sandbox.settings import PROJECT, Home
from sandbox.streams import STREAMS
from sandbox.ui import err, say, tell
from spark_ingest.errors import MillraceError
from spark_ingest.preflight import check_disk, check_java, check_spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWING_THEMSELVES = ("parts", "services")
STEPS = ("parts", "services", "events", "ingest", "dbt build", "docs")
DEFAULT_COUNT = 100_000
LATE = 0.05
BAD = 0.01
TOP_WINDOWS = 5
_STOP_SECONDS = 20.0
_TAIL_LINES = 20
_STREAM = STREAMS["pagila.sales"]
_TABLE = "bronze.pagila__sales"
_QUARANTINE = "bronze.quarantine"


class DemoFailed(MillraceError):
    """A step did not end well, or the report does not add up."""


@dataclass
class Demo:
    """One run.

    Attributes:
        home: The sandbox.
        count: How many events to send.
        keep: Leave the services running.
        started: Services that this run started.
        ends: End offset by partition after the events were sent: what must be found.
        tests: How many dbt nodes of each kind ended how.
    """

    home: Home
    count: int
    keep: bool
    started: list[str] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    tests: Counter[tuple[str, str]] = field(default_factory=Counter)

    def run(self) -> None:
        """All steps and the report; stops what it started, unless told to keep it.

        Raises:
            MillraceError: A step failed, or records are missing or doubled.
        """
        check_java()
        check_spark_home()
        check_disk(self.home.path)
        begun = time.monotonic()
        try:
            steps = (
                self._parts,
                self._services,
                self._events,
                self._ingest,
                self._build,
                self._docs,
            )
            for number, (name, step) in enumerate(zip(STEPS, steps, strict=True), 1):
                _step(number, name, step)
            self._report(begun)
        finally:
            self._stop()

    def _parts(self) -> str:
        fetched = parts.fetch()
        return f"fetched {', '.join(fetched)}" if fetched else "all there"

    def _services(self) -> str:
        self.started = stack.up(self.home)
        return (
            f"broker {self.home.bootstrap_servers}, registry {self.home.registry_url}"
        )

    def _events(self) -> str:
        # Other events in each run: the seed is how many there are already.
        seed = sum(_end_offsets(self.home).values()) + 1
        # fmt: off
        printed = self._program(
            "events", "sandbox", "produce", "pagila", "--count", str(self.count),
            "--late", str(LATE), "--bad", str(BAD), "--seed", str(seed), "--json",
        )
        # fmt: on
        self.ends = _end_offsets(self.home)
        (facts,) = _json_lines(printed)
        return (
            f"{facts['delivered']:,} sent, {facts['records_per_second']:,}/s:"
            f" {facts['late']:,} late, {facts['bad']:,} undecodable"
        )

    def _ingest(self) -> str:
        printed = self._program("ingest", "spark-ingest", "run", "--once")
        batches = [
            line for line in _json_lines(printed) if line.get("event") == "batch"
        ]
        rows = sum(batch["rows"] for batch in batches)
        quarantined = sum(batch["quarantined"] for batch in batches)
        return f"{rows:,} rows in bronze, {quarantined:,} in quarantine"

    def _build(self) -> str:
        results = PROJECT / "target" / "run_results.json"
        results.unlink(missing_ok=True)
        self._program("dbt-build", "dbt", "build")
        self.tests = _dbt_results(results)
        return _dbt_line(self.tests)

    def _docs(self) -> str:
        self._program("dbt-docs", "dbt", "docs", "generate")
        return _page()

    def _program(self, name: str, *command: str) -> str:
        """Run a console program of this environment; return its standard output.

        Raises:
            DemoFailed: It exited with an error; the message ends with what it said last.
        """
        log = self.home.logs / f"demo-{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        program = Path(sys.executable).parent / command[0]
        with log.open("w") as output:
            code = _run([str(program), *command[1:]], _environment(self.home), output)
        printed = log.read_text(errors="replace")
        if code != 0:
            last = printed.splitlines()[-_TAIL_LINES:]
            said = "".join(f"\n  | {line}" for line in last)
            raise DemoFailed(
                f"`{' '.join(command)}` exited with {code}: see {log}; it said last:{said}"
            )
        return printed

    def _report(self, begun: float) -> None:
        with _working("reading the report from the tables"):
            spark = open_lake(self.home, "sandbox demo")
            try:
                proof = _count(spark, self.ends)
                top = spark.sql(
                    "select sales_region, window_start_at, window_end_at, sales_amount,"
                    " order_count from marts.fct_regional_sales_windows"
                    f" order by sales_amount desc, window_start_at limit {TOP_WINDOWS}"
                )
                table = StringIO()
                write_table(top, table)
            finally:
                spark.stop()
        seconds = time.monotonic() - begun
        tell("")
        for name, number in proof.items():
            tell(
                f"  {name:<14}{number:>12,}",
                style="bold" if number and name in _BAD else "",
            )
        tell(f"  {'dbt':<14}{_dbt_line(self.tests)}")
        tell("")
        tell(
            "The largest regional sales windows (marts.fct_regional_sales_windows, UTC):"
        )
        tell(indent(table.getvalue().rstrip(), "  "))
        tell("")
        tell(_NEXT.format(seconds=seconds, docs=_page()))
        if any(proof[name] for name in _BAD):
            raise DemoFailed(
                "records are missing or doubled: `spark-ingest verify` names them"
            )

    def _stop(self) -> None:
        if not self.started:
            return
        if self.keep:
            tell(f"Still running: {', '.join(self.started)}. Stop with `sandbox down`.")
            return
        # A second Ctrl-C must not leave half of them running.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            stack.down(self.home, self.started)
        finally:
            signal.signal(signal.SIGINT, before)


_BAD = ("missing", "doubled")
_NEXT = """\
Done in {seconds:.0f} s. The docs are in {docs}: `make docs` serves them.
What to try next:
  make docs                                  browse models, columns, lineage
  . .venv/bin/activate                       then, typed by hand:
  sandbox up                                 start broker and registry again
  sandbox produce pagila --rate 50/s         a live stream, until Ctrl-C
  spark-ingest run --every 10s               land it while it comes
  spark-ingest verify                        prove that nothing is lost or doubled
  dbt build                                  models and tests again
  sandbox sql "select * from marts.rpt_region_sales order by sales_amount desc\""""


def _step(number: int, name: str, step: Callable[[], str]) -> None:
    head = f"[{number}/{len(STEPS)}] {name:<10}"
    begun = time.monotonic()
    try:
        with _working(head, live=name not in _SHOWING_THEMSELVES):
            told = step()
    except MillraceError as error:
        raise DemoFailed(f"step {number}, {name}: {error}") from error
    tell(f"{head}{time.monotonic() - begun:6.1f} s  {told}")


@contextmanager
def _working(text: str, *, live: bool = True) -> Iterator[None]:
    """A spinner with the time on a terminal, the text once elsewhere."""
    if not live or not err.is_terminal:
        say(f"{text} ...")
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        progress.add_task(escape(text))
        yield


def _environment(home: Home) -> dict[str, str]:
    """What the programs see: this sandbox, this project's dbt, no other settings of dbt."""
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("DBT_")
    }
    return {**env, **home.environment()}


def _run(command: list[str], env: dict[str, str], output: IO[str]) -> int:
    """Run a program in its own process group, which ends with us however we end."""
    running = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return running.wait()
    except BaseException:  # Ctrl-C reaches only us: the group is not the terminal's
        process.end_group(running.pid, _STOP_SECONDS)
        running.wait()
        raise


def _end_offsets(home: Home) -> dict[int, int]:
    from sandbox.services.kafka import end_offsets

    return end_offsets(home, _STREAM.topic)


def _json_lines(printed: str) -> list[dict[str, Any]]:
    """The lines of a program's output that are JSON objects."""
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def _page() -> str:
    """The docs' first page, as it is reached from here."""
    return os.path.relpath(PROJECT / "target" / "index.html")


def _dbt_results(file: Path) -> Counter[tuple[str, str]]:
    """How many nodes ended how, by kind (model, test, seed, unit_test) and status."""
    try:
        results = json.loads(file.read_text())["results"]
    except (OSError, ValueError, KeyError) as error:
        raise DemoFailed(f"dbt left no results in {file}: {error}") from error
    return Counter(
        (str(result["unique_id"]).partition(".")[0], str(result["status"]))
        for result in results
    )


_KINDS = {
    "model": "model",
    "seed": "seed",
    "test": "data test",
    "unit_test": "unit test",
}
_GOOD = ("success", "pass", "no-op")


def _dbt_line(results: Counter[tuple[str, str]]) -> str:
    """Such as: 7 models, 1 seed, 65 data tests, 20 unit tests: all good."""
    counts = Counter[str]()
    for (kind, _), number in results.items():
        counts[kind] += number
    what = ", ".join(
        f"{counts[kind]} {name}{'s' if counts[kind] > 1 else ''}"
        for kind, name in _KINDS.items()
        if counts[kind]
    )
    bad = {key: number for key, number in results.items() if key[1] not in _GOOD}
    told = ", ".join(
        f"{number} {kind} {status}" for (kind, status), number in bad.items()
    )
    return f"{what}: {told or 'all good'}"


def _count(spark: SparkSession, ends: dict[int, int]) -> dict[str, int]:
    """Compare the positions that the broker gave with those that the tables hold."""
    positions = (
        "select _kafka_topic_id as topic_id, _kafka_partition as partition,"
        " _kafka_offset as position, {0} as place from {1}"
        f" where _kafka_topic = '{_STREAM.topic}' and ("
        + " or ".join(
            f"(_kafka_partition = {partition} and _kafka_offset < {end})"
            for partition, end in ends.items()
        )
        + ")"
    )
    found = spark.sql(
        "with found as ("
        + positions.format("'bronze'", _TABLE)
        + " union all "
        + positions.format("'quarantine'", _QUARANTINE)
        + ") select count_if(place = 'bronze'), count_if(place = 'quarantine'),"
        " count(distinct topic_id, partition, position) from found"
    ).first()
    if found is None:
        raise DemoFailed("the count of the tables is empty")
    bronze, quarantine, distinct = (int(number) for number in found)
    produced = sum(ends.values())
    return {
        "produced": produced,
        "in bronze": bronze,
        "in quarantine": quarantine,
        "missing": produced - distinct,
        "doubled": bronze + quarantine - distinct,
    }
