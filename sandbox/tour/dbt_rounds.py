"""dbt increments round after round, in one process that keeps its Spark and its manifest.

`sandbox live` runs it as a program of its own. It prints one line of JSON when the marts
are there and one for each round, and ends after the round at work when it gets SIGTERM.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from sandbox.services.kafka import present_topics
from sandbox.settings import Home, load_home
from sandbox.tour import left_out
from sandbox.tour.query import open_lake
from sandbox.tour.round_report import PREPARING, READY, ROUND
from spark_ingest.errors import MillraceError
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason
from spark_ingest.lake.session import silence_statement_log
from spark_ingest.streaming.captured_topics import was_filled

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from dbt.contracts.graph.nodes import SourceDefinition
    from pyspark.sql import SparkSession

# The facts whose age is told, and their event time.
NEWEST = {"marts.fct_rental_sales": "paid_at", "marts.fct_purchases_enriched": "purchased_at"}
# All that increments are built from, and nothing that is rebuilt from all its rows.
INCREMENTS = "+config.materialized:incremental,path:models/marts"
_VIEWS = "config.materialized:view"
_POLL_SECONDS = 0.25
# Readers of a mart may hold an older version of it for so long.
_KEEP_SECONDS = 600
_KEEP_SNAPSHOTS = 5
# A process that runs for hours must not remember each of its queries; and the code that is
# generated for one round serves the next.
_SPARK = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.codegen.cache.maxEntries": "2000",
}


class RoundFailed(MillraceError):
    """A run of dbt did not end well."""


@dataclass
class Rounds:
    """The work: everything once, then what is new, again and again.

    Attributes:
        stopping: Set by :meth:`stop`.
        manifest: The project as dbt parsed it at the start.
        streams: The tables that are asked what is new.
        spark: The session that dbt uses as well.
    """

    home: Home
    stopping: threading.Event = field(default_factory=threading.Event)
    manifest: Manifest = field(init=False)
    streams: Mapping[str, str] = field(init=False)
    spark: SparkSession = field(init=False)
    _may_break_off: bool = False
    _increments: Sequence[str] = ()

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """For a signal: the round at work is the last.

        A build, which may take minutes, is broken off: dbt finishes the models at work.
        """
        self.stopping.set()
        if self._may_break_off:
            raise KeyboardInterrupt

    def run(self) -> None:
        """Go on until told to stop.

        Raises:
            MillraceError: dbt failed; the message is its first complaint.
        """
        self.manifest = self._dbt("parse")
        sources = self.manifest.sources.values()
        self.streams = tables_with_topics(sources, present_topics(self.home))
        self.spark = open_lake(self.home, "sandbox live", _SPARK)
        silence_statement_log()
        if not self._wait_for_bronze():
            return
        seen = self._newest_commits()
        if not self._make_ready():
            seen = {}
        if self.stopping.is_set():
            return
        number = 0
        newest = self._newest_events()
        rows = self._row_counts()
        while not self.stopping.is_set():
            before, seen = seen, self._newest_commits()
            changed = [name for name in seen if seen[name] != before.get(name)]
            if not changed:
                self.stopping.wait(_POLL_SECONDS)
                continue
            number += 1
            begun = time.monotonic()
            self._dbt("run", "--select", *(f"source:{s}+,{INCREMENTS}" for s in changed))
            seconds = time.monotonic() - begun
            now = time.time()
            old, newest = newest, self._newest_events()
            counted, rows = rows, self._row_counts()
            _print_message(
                ROUND,
                number=number,
                seconds=round(seconds, 2),
                rows=sum(rows.values()) - sum(counted.values()),
                ages=_ages(newest, now),
                ages_before=_ages(old, now),
            )
            self._forget_old_versions(number)

    def _make_ready(self) -> bool:
        """Build and test when something is missing, else make the views again.

        As in the demo, tests of code are left out, and what is built from captured tables
        without a topic that hold nothing. Returns whether it was built.
        """
        begun = time.monotonic()
        manifest = self.manifest.writable_manifest().to_dict()
        sources = left_out.unfilled(manifest, self._may_fill)
        unwanted = left_out.readers(manifest, sources)
        self._increments = increments(self.manifest.nodes.values(), unwanted)
        missing = self._missing_relations(unwanted)
        arguments = (
            ["build", *left_out.selection(manifest, sources)]
            if missing
            else ["run", "--select", _VIEWS, *left_out.excluded(sources)]
        )
        _print_message(PREPARING, missing=missing)
        with suppress(KeyboardInterrupt):
            self._may_break_off = True
            self._dbt(*arguments)
        self._may_break_off = False
        if self.stopping.is_set():
            return False
        _print_message(READY, seconds=round(time.monotonic() - begun, 1))
        return bool(missing)

    def _dbt(self, *arguments: str) -> Any:
        """Run dbt in this process; what it returns.

        Raises:
            RoundFailed: It failed.
        """
        from dbt.cli.main import dbtRunner

        manifest = getattr(self, "manifest", None)
        done = dbtRunner(manifest=manifest).invoke(
            [
                "--quiet",
                *("--log-path", str(self.home.logs / "live-dbt")),
                *("--log-level-file", "info"),
                "--cache-selected-only",
                "--no-write-json",
                *arguments,
                # Not the checkout's: other commands of dbt may be at work there.
                *("--target-path", str(self.home.path / "live-target")),
            ]
        )
        if not done.success:
            if self.stopping.is_set() and self._may_break_off:
                return None
            raise RoundFailed(f"`dbt {' '.join(arguments)}` failed: {_complaint(done)}")
        return done.result

    def _wait_for_bronze(self) -> bool:
        """Wait until ingest has made its tables; false when told to stop before."""
        needed = {
            f"{source.schema}.{source.identifier}" for source in self.manifest.sources.values()
        }
        while missing := [t for t in needed if not self.spark.catalog.tableExists(t)]:
            if self.stopping.wait(_POLL_SECONDS):
                return False
            needed = set(missing)
        return True

    def _may_fill(self, table: str) -> bool:
        """Whether a captured table holds something, or a round may find something new in it."""
        return table in self.streams.values() or was_filled(self.spark, table)

    def _missing_relations(self, unwanted: Set[str]) -> list[str]:
        """Tables and views of the project, but for some, that the lake does not have."""
        wanted = {
            (node.schema, node.alias)
            for node in self.manifest.nodes.values()
            if node.resource_type in ("model", "seed")
            and node.unique_id not in unwanted
            and node.config.materialized != "ephemeral"
        }
        schemas = {row[0] for row in self.spark.sql("show schemas").collect()}
        # Spark's own question for one table does not see Iceberg's views.
        there = {
            (schema, row[1])
            for schema in schemas & {schema for schema, _ in wanted}
            for kind in ("tables", "views")
            for row in self.spark.sql(f"show {kind} in {schema}").collect()
        }
        return sorted(f"{schema}.{name}" for schema, name in wanted - there)

    def _newest_commits(self) -> dict[str, int]:
        """The number of the newest snapshot of each stream's bronze table."""
        jvm = Jvm(self.spark)
        commits = {}
        for name, table in self.streams.items():
            snapshot = jvm.iceberg_table(table).currentSnapshot()
            commits[name] = 0 if snapshot is None else snapshot.snapshotId()
        return commits

    def _row_counts(self) -> dict[str, int]:
        """Rows of each incremental mart, from its metadata."""
        jvm = Jvm(self.spark)
        return {
            table: int(jvm.iceberg_table(table).currentSnapshot().summary()["total-records"])
            for table in self._increments
        }

    def _newest_events(self) -> dict[str, float | None]:
        """The newest event time that each fact of ``NEWEST`` holds, in seconds since 1970.

        Not as Python's own times, which end with the year 9999: an event may have any.
        """
        found: dict[str, float | None] = {}
        for table, column in NEWEST.items():
            # Iceberg answers this from the metadata of the files.
            row = self.spark.sql(
                f"select unix_micros(newest) from (select max({column}) as newest from {table})"
            ).first()
            micros = None if row is None else row[0]
            found[table] = None if micros is None else micros / 1e6
        return found

    def _forget_old_versions(self, number: int) -> None:
        """Remove what only old versions of one mart hold; each round it is another's turn.

        Each increment rewrites its days: without this the disk fills within hours.
        """
        tables = self._increments
        table = Jvm(self.spark).iceberg_table(tables[number % len(tables)])
        before = int((time.time() - _KEEP_SECONDS) * 1000)
        table.expireSnapshots().expireOlderThan(before).retainLast(_KEEP_SNAPSHOTS).commit()


def increments(nodes: Iterable[Any], unwanted: Set[str]) -> list[str]:
    """The tables, ``schema.name``, that are built by increments.

    ``nodes`` are as dbt parsed them; ``unwanted`` has the unique ids of those that nobody
    builds, since captured tables hold nothing.
    """
    return [
        f"{node.schema}.{node.alias}"
        for node in nodes
        if node.config.materialized == "incremental" and node.unique_id not in unwanted
    ]


def tables_with_topics(sources: Iterable[SourceDefinition], topics: Set[str]) -> dict[str, str]:
    """The bronze table of each source table whose topic is there, by its dbt name.

    Captured tables of which nothing was captured yet are left out: to ask each of them what
    is new, four times a second, would cost the others their time. ``topics`` are those that the
    broker has.
    """
    return {
        f"{source.source_name}.{source.name}": f"{source.schema}.{source.identifier}"
        for source in sources
        if source.config.meta.get("ingest", {}).get("topic") in topics
    }


def _ages(newest: Mapping[str, float | None], now: float) -> dict[str, float | None]:
    """How long ago the newest event of each fact happened, in seconds."""
    return {table: None if at is None else round(now - at, 1) for table, at in newest.items()}


def _print_message(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


def _complaint(done: Any) -> str:
    """What dbt said of the first thing that failed, on one line."""
    if done.exception is not None:
        return _one_line(str(done.exception))
    for result in done.result.results if done.result else ():
        if result.status not in ("success", "pass", "no-op", "skipped", "warn"):
            return f"{result.node.name}: {_one_line(result.message or result.status)}"
    return "it gives no reason"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """The program; a failure is one line on standard error."""
    try:
        rounds = Rounds(load_home())
        signal.signal(signal.SIGTERM, rounds.stop)
        rounds.run()
    except MillraceError as error:
        print(f"live: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (*JAVA_ERRORS, OSError) as error:
        print(f"live: {java_reason(error)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
