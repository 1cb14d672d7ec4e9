"""Repeated dbt increments, in one process that keeps its Spark session and manifest.

`sandbox live` runs it as a separate program. It prints one line of JSON when the marts are
built and one per round, and on SIGTERM exits after the current round.
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
from sandbox.tour import exclusions
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

# The fact tables whose age is reported, and their event time.
NEWEST = {"marts.fct_rental_sales": "paid_at", "marts.fct_purchases_enriched": "purchased_at"}
# Incremental models with their upstream nodes; no model that is rebuilt in full.
INCREMENTS = "+config.materialized:incremental,path:models/marts"
_VIEWS = "config.materialized:view"
_POLL_SECONDS = 0.25
# Readers of a mart may use an older snapshot for this long.
_KEEP_SECONDS = 600
_KEEP_SNAPSHOTS = 5
# A process that runs for hours must not keep the metrics of all queries; and the code
# generated in one round is reused in the next.
_SPARK = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.codegen.cache.maxEntries": "2000",
}


class RoundFailed(MillraceError):
    """A dbt run failed."""


@dataclass
class Rounds:
    """A full build once, then increments, round after round.

    Attributes:
        stopping: Set by :meth:`stop`.
        manifest: The project as dbt parsed it at the start.
        streams: The tables that are polled for new snapshots.
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
        """Signal handler: the current round is the last.

        A build, which may take minutes, is interrupted: dbt finishes the running models.
        """
        self.stopping.set()
        if self._may_break_off:
            raise KeyboardInterrupt

    def run(self) -> None:
        """Run until stopped.

        Raises:
            MillraceError: dbt failed; the message is its first error.
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
        """Build and test if a relation is missing, otherwise recreate the views.

        As in the demo, tests of code are excluded, and models of empty captured tables
        without a topic. Returns whether it ran a build.
        """
        begun = time.monotonic()
        manifest = self.manifest.writable_manifest().to_dict()
        sources = exclusions.unfilled(manifest, self._may_fill)
        excluded = exclusions.readers(manifest, sources)
        self._increments = increments(self.manifest.nodes.values(), excluded)
        missing = self._missing_relations(excluded)
        arguments = (
            ["build", *exclusions.selection(manifest, sources)]
            if missing
            else ["run", "--select", _VIEWS, *exclusions.excluded(sources)]
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
        """Run dbt in this process and return its result.

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
                # Not the checkout's target folder: other dbt commands may use it.
                *("--target-path", str(self.home.path / "live-target")),
            ]
        )
        if not done.success:
            if self.stopping.is_set() and self._may_break_off:
                return None
            raise RoundFailed(f"`dbt {' '.join(arguments)}` failed: {_first_error(done)}")
        return done.result

    def _wait_for_bronze(self) -> bool:
        """Wait until ingest has created its tables; false if stopped before."""
        needed = {
            f"{source.schema}.{source.identifier}" for source in self.manifest.sources.values()
        }
        while missing := [t for t in needed if not self.spark.catalog.tableExists(t)]:
            if self.stopping.wait(_POLL_SECONDS):
                return False
            needed = set(missing)
        return True

    def _may_fill(self, table: str) -> bool:
        """Whether a captured table has rows, or may get some."""
        return table in self.streams.values() or was_filled(self.spark, table)

    def _missing_relations(self, excluded: Set[str]) -> list[str]:
        """Tables and views of the project that the lake does not have, except the excluded."""
        wanted = {
            (node.schema, node.alias)
            for node in self.manifest.nodes.values()
            if node.resource_type in ("model", "seed")
            and node.unique_id not in excluded
            and node.config.materialized != "ephemeral"
        }
        schemas = {row[0] for row in self.spark.sql("show schemas").collect()}
        # Spark's `tableExists` does not find Iceberg views.
        there = {
            (schema, row[1])
            for schema in schemas & {schema for schema, _ in wanted}
            for kind in ("tables", "views")
            for row in self.spark.sql(f"show {kind} in {schema}").collect()
        }
        return sorted(f"{schema}.{name}" for schema, name in wanted - there)

    def _newest_commits(self) -> dict[str, int]:
        """The current snapshot id of each stream's bronze table."""
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
        """The newest event time in each fact table of ``NEWEST``, in seconds since 1970.

        Not as a Python datetime, which ends with the year 9999.
        """
        found: dict[str, float | None] = {}
        for table, column in NEWEST.items():
            # Iceberg answers this from file metadata.
            row = self.spark.sql(
                f"select unix_micros(newest) from (select max({column}) as newest from {table})"
            ).first()
            micros = None if row is None else row[0]
            found[table] = None if micros is None else micros / 1e6
        return found

    def _forget_old_versions(self, number: int) -> None:
        """Expire old snapshots of one mart, another one each round.

        Each increment rewrites partitions: without this the disk fills within hours.
        """
        tables = self._increments
        table = Jvm(self.spark).iceberg_table(tables[number % len(tables)])
        before = int((time.time() - _KEEP_SECONDS) * 1000)
        table.expireSnapshots().expireOlderThan(before).retainLast(_KEEP_SNAPSHOTS).commit()


def increments(nodes: Iterable[Any], excluded: Set[str]) -> list[str]:
    """The incremental tables, as ``schema.name``.

    ``nodes`` are from dbt's manifest; ``excluded`` has the unique ids of excluded nodes.
    """
    return [
        f"{node.schema}.{node.alias}"
        for node in nodes
        if node.config.materialized == "incremental" and node.unique_id not in excluded
    ]


def tables_with_topics(sources: Iterable[SourceDefinition], topics: Set[str]) -> dict[str, str]:
    """The bronze table of each source table whose topic exists, by its dbt name.

    Captured tables without a topic are not polled, which would slow down the others.
    ``topics`` are the topics on the broker.
    """
    return {
        f"{source.source_name}.{source.name}": f"{source.schema}.{source.identifier}"
        for source in sources
        if source.config.meta.get("ingest", {}).get("topic") in topics
    }


def _ages(newest: Mapping[str, float | None], now: float) -> dict[str, float | None]:
    """Age of the newest event of each fact table, in seconds."""
    return {table: None if at is None else round(now - at, 1) for table, at in newest.items()}


def _print_message(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


def _first_error(done: Any) -> str:
    """Dbt's first error, on one line."""
    if done.exception is not None:
        return _one_line(str(done.exception))
    for result in done.result.results if done.result else ():
        if result.status not in ("success", "pass", "no-op", "skipped", "warn"):
            return f"{result.node.name}: {_one_line(result.message or result.status)}"
    return "it gives no reason"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Entry point; a failure is one line on standard error."""
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
