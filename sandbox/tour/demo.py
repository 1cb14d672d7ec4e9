"""`sandbox demo`: run the pipeline once, from events or databases to the docs and a report."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from textwrap import indent
from typing import Any

from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sandbox.install import parts, spark_conf
from sandbox.processes.locks import claimed
from sandbox.processes.programs import Dialogue, json_lines, run_to_end
from sandbox.services import stack
from sandbox.services.kafka import end_offsets
from sandbox.settings import Home
from sandbox.streams import declared_topics
from sandbox.streams.generator import generators
from sandbox.tour import demo_marts
from sandbox.tour.row_counts import RowCounts, total
from sandbox.tour.scenarios import EVENTS, Scenario
from sandbox.ui import echo, err, say
from spark_ingest.errors import MillraceError
from spark_ingest.lake.preflight import check_disk, check_java, check_spark_home

_WITH_OWN_PROGRESS = ("parts", "services")
# Indent of the second line of a step's message.
_INDENT = 17
DEFAULT_COUNT = 100_000
DEFAULT_SCALE = 0.1
# Changes in the ticket shop once its databases are filled.
CHANGES = 1_000
LATE = 0.05
BAD = 0.01
WRONG = 0.01
# Each generator makes some late, some broken and some wrong events, on purpose.
SHARES = {
    command: (
        *("--late", str(LATE), "--bad", str(BAD)),
        *(("--wrong", str(WRONG)) if generator.makes_wrong else ()),
    )
    for command, generator in generators().items()
}


class DemoFailed(MillraceError):
    """A step failed, or the row counts of the report do not add up."""


@dataclass
class Demo:
    """One run.

    Attributes:
        count: Number of events to send, split evenly between the generators.
        keep: Leave the services running.
        secure: Make a sandbox without data secure.
        scale: Size of an empty ticket shop, in that scenario.
        started: Services that this run started.
        ends: End offset by stream and partition after the events were sent.
        tests: Number of dbt nodes by kind and status.
    """

    home: Home
    count: int
    keep: bool
    secure: bool = False
    scenario: Scenario = EVENTS
    scale: float = DEFAULT_SCALE
    started: list[str] = field(default_factory=list)
    ends: dict[str, dict[int, int]] = field(default_factory=dict)
    tests: Counter[tuple[str, str]] = field(default_factory=Counter)
    _marts: Dialogue = field(init=False)

    def run(self) -> None:
        """Run all steps and print the report; stops what it started, unless ``keep`` is set.

        Raises:
            MillraceError: A step failed, or records are missing or duplicated.
        """
        check_java()
        check_spark_home()
        check_disk(self.home.path)
        with claimed(self.home.lake_lock, "`sandbox demo`") as lock:
            self._run(lock)

    def _run(self, lock: int) -> None:
        begun = time.monotonic()
        try:
            self._step("parts", self._parts)
            # It parses the project and starts Spark while the services start.
            with self._begin_marts(lock) as self._marts:
                self._step("services", self._services)
                send = self._events if self.scenario is EVENTS else self._changes
                self._step(self.scenario.sent, send)
                self._step("ingest", self._ingest)
                self._step("dbt build", self._build)
                self._step("docs", self._docs)
                self._report(begun)
        finally:
            self._stop()

    def _step(self, name: str, step: Callable[[], str]) -> None:
        steps = self.scenario.steps
        number = steps.index(name) + 1
        head = f"[{number}/{len(steps)}] {name:<10}"
        begun = time.monotonic()
        try:
            with _working(head, live=name not in _WITH_OWN_PROGRESS):
                outcome = step()
        except MillraceError as error:
            raise DemoFailed(f"step {number}, {name}: {error}") from error
        echo(f"{head}{time.monotonic() - begun:6.1f} s  {outcome}")

    def _begin_marts(self, lock: int) -> Dialogue:
        command = [sys.executable, "-m", "sandbox.tour.demo_marts", self.scenario.name]
        log = self.home.logs / "demo-spark.log"
        is_usual = self.count <= DEFAULT_COUNT and self.scale <= DEFAULT_SCALE
        settings = spark_settings(is_usual=is_usual)
        return Dialogue("the demo's Spark", command, self.home, log, lock, settings)

    def _hear(self, event: str) -> dict[str, Any]:
        while (heard := self._marts.hear())["event"] != event:
            pass
        return heard

    def _parts(self) -> str:
        fetched = parts.fetch()
        spark_conf.bring_spark()
        return f"fetched {', '.join(fetched)}" if fetched else "all there"

    def _services(self) -> str:
        self.started = stack.up(self.home, self.scenario.services, secure=self.secure)
        return f"broker {self.home.bootstrap_servers}, registry {self.home.registry_url}"

    def _events(self) -> str:
        seed = next_seed(self.home, self.scenario.streams)
        facts: Counter[str] = Counter()
        for source, count in shared_out(self.count).items():
            # fmt: off
            reported = self._result_of(
                "events", "sandbox", "produce", source, "--count", str(count),
                *SHARES[source], "--seed", str(seed), "--json",
            )
            # fmt: on
            facts.update({name: reported.get(name, 0) for name in _COUNTED})
        self.ends = stream_ends(self.home, self.scenario.streams)
        rate = facts["delivered"] / facts["seconds"]
        return (
            f"{facts['delivered']:,} sent, {rate:,.0f}/s: {facts['late']:,} late,"
            f" {facts['wrong']:,} wrong, {facts['bad']:,} undecodable"
        )

    def _changes(self) -> str:
        shop = ("sandbox", "produce", "tickit", "--json")
        filled = self._result_of("rows", *shop, "--scale", str(self.scale))
        # The connectors have delivered all rows: all topics exist now.
        seed = next_seed(self.home, self.scenario.streams)
        changed = self._result_of("changes", *shop, "--changes", str(CHANGES), "--seed", str(seed))
        self.ends = stream_ends(self.home, self.scenario.streams)
        rows = sum(
            sum(database["rows_before"].values()) + sum(database["rows_written"].values())
            for database in filled["databases"].values()
        )
        lacking = "".join(f"; without {name}" for name in filled["left_out"])
        return (
            f"{rows:,} rows in {', '.join(filled['databases'])},"
            f" {changed['changes']:,} changes{lacking}"
        )

    def _result_of(self, name: str, *command: str) -> dict[str, Any]:
        (reported,) = json_lines(self._program(name, *command))
        return reported

    def _ingest(self) -> str:
        self._marts.send(ends=self.ends)
        reported = self._hear(demo_marts.INGESTED)
        return f"{reported['rows']:,} rows in bronze, {reported['quarantined']:,} in quarantine"

    def _build(self) -> str:
        # All records are in the lake: broker and registry can stop while dbt runs.
        if not self.keep:
            self._stop()
        left_out = self._hear(demo_marts.BUILT)["left_out"]
        self.tests = dbt_results(demo_marts.TARGET / "run_results.json")
        return f"{dbt_line(self.tests)}\n{' ' * _INDENT}{left_out}"

    def _docs(self) -> str:
        self._hear(demo_marts.DOCUMENTED)
        return _page()

    def _program(self, name: str, *command: str) -> str:
        log = self.home.logs / f"demo-{name}.log"
        return run_to_end(self.home, log, *command)

    def _report(self, begun: float) -> None:
        with _working("reading the report from the tables"):
            report = self._hear(demo_marts.REPORT)
        counted = {name: RowCounts(**of) for name, of in report["row_counts"].items()}
        seconds = time.monotonic() - begun
        echo("")
        print_row_counts(counted)
        echo(f"  dbt: {dbt_line(self.tests)}")
        for title, rows in report["tops"].items():
            echo("")
            echo(title)
            echo(indent(rows.rstrip(), "  "))
        echo("")
        echo(f"Done in {seconds:.0f} s. The docs are in {_page()}: `make docs` serves them.")
        echo("What to try next:")
        for command, says in {**_FIRST_HINTS, **self.scenario.hints}.items():
            echo(f"  {command:<41}  {says}".rstrip())
        if not total(counted).is_complete:
            raise DemoFailed("records are missing or duplicated: `spark-ingest verify` lists them")

    def _stop(self) -> None:
        if not self.started:
            return
        if self.keep:
            echo(f"Still running: {', '.join(self.started)}. Stop with `sandbox down`.")
            return
        # A second Ctrl-C must not leave half of them running.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            stack.down(self.home, self.started)
            self.started = []
        finally:
            signal.signal(signal.SIGINT, before)


_COUNTED = ("delivered", "late", "wrong", "bad", "seconds")
_FIRST_HINTS = {
    "make docs": "browse models, columns, lineage",
    ". .venv/bin/activate": "then, typed by hand:",
}


def shared_out(events: int) -> dict[str, int]:
    """Number of events by generator command, split as evenly as possible."""
    return {
        source: (events + len(SHARES) - 1 - number) // len(SHARES)
        for number, source in enumerate(SHARES)
    }


def stream_ends(home: Home, streams: Iterable[str]) -> dict[str, dict[int, int]]:
    """The end offset of each partition of each stream.

    Raises:
        ServiceUnavailable: The broker does not answer, or has no such topic.
    """
    topics = declared_topics()
    return {name: end_offsets(home, topics[name]) for name in streams}


def next_seed(home: Home, streams: Iterable[str]) -> int:
    """A seed that no earlier run on this broker used, so that events differ.

    Raises:
        ServiceUnavailable: The broker does not answer, or has no such topic.
    """
    return 1 + sum(sum(ends.values()) for ends in stream_ends(home, streams).values())


def print_row_counts(counted: dict[str, RowCounts]) -> None:
    """Print a line per stream and a total; incomplete streams are bold."""
    names = [one.name for one in fields(RowCounts)]
    echo("  " + f"{'stream':<24}" + "".join(f"{name:>12}" for name in names))
    for stream, counts in {**counted, "all": total(counted)}.items():
        numbers = "".join(f"{number:>12,}" for number in astuple(counts))
        echo(f"  {stream:<24}{numbers}", style="" if counts.is_complete else "bold")


@contextmanager
def _working(text: str, *, live: bool = True) -> Iterator[None]:
    """Show a spinner with elapsed time on a terminal, otherwise just the text."""
    if not live or not err.is_terminal:
        say(f"{text} ...")
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        progress.add_task(escape(text))
        yield


def _page() -> str:
    """The start page of the docs, as a path relative to the working directory."""
    return os.path.relpath(demo_marts.TARGET / "index.html")


def spark_settings(*, is_usual: bool) -> dict[str, str]:
    """Environment variables of ingest and dbt, by the size of the demo.

    At the default size whole-stage code generation costs more than it saves.
    """
    if not is_usual:
        return {}
    return {"SPARK_SUBMIT_OPTS": spark_conf.options_for_few_rows()}


def dbt_results(file: Path) -> Counter[tuple[str, str]]:
    """Number of nodes by kind (model, test, seed, unit_test) and status."""
    try:
        results = json.loads(file.read_text())["results"]
    except (OSError, ValueError, KeyError) as error:
        raise DemoFailed(f"dbt left no results in {file}: {error}") from error
    return Counter(
        (str(result["unique_id"]).partition(".")[0], str(result["status"])) for result in results
    )


_KINDS = {"model": "model", "seed": "seed", "test": "data test", "unit_test": "unit test"}
_GOOD = ("success", "pass", "no-op")


def dbt_line(results: Counter[tuple[str, str]]) -> str:
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
    failures = ", ".join(f"{number} {kind} {status}" for (kind, status), number in bad.items())
    return f"{what}: {failures or 'all good'}"
