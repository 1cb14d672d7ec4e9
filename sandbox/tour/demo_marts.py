"""The demo's ingest, marts, docs and report: one process, one Spark, one parse of the project.

The demo runs it as a separate program. It parses the project and starts Spark, then waits for the
message that the records are on the broker; the events that it prints on standard output are below.
`spark-ingest run --once` and the dbt commands are the ones that users run: but Spark and the
manifest exist already, and the JVM is warm.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from sandbox.processes.programs import json_lines
from sandbox.settings import PROJECT, Home, load_home
from sandbox.tour import exclusions
from sandbox.tour.query import open_lake, write_table
from sandbox.tour.row_counts import row_counts
from sandbox.tour.scenarios import SCENARIOS, Scenario
from spark_ingest.errors import MillraceError
from spark_ingest.sources import target_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `spark-ingest run --once` has finished; with the totals of its batches.
INGESTED = "ingested"
# dbt has built and tested; with a summary of what was left out.
BUILT = "built"
# The docs are generated.
DOCUMENTED = "documented"
# Records on the broker, row counts of the tables, and top lists of the marts.
REPORT = "report"

TARGET = target_folder(PROJECT)
_STOPPING = (signal.SIGINT, signal.SIGTERM)


class DbtFailed(MillraceError):
    """A dbt command failed; see its output."""


class Marts:
    """dbt in this process, with the manifest that it parsed at the start."""

    def __init__(
        self, home: Home, scenario: Scenario, answers: IO[str], asked: Iterator[str]
    ) -> None:
        """Set up the run.

        Args:
            answers: Receives a line of JSON per finished step.
            asked: Yields a line of JSON when the records are on the broker: ``ends`` are
                the end offsets by stream and partition.
        """
        self._home = home
        self._scenario = scenario
        self._answers = answers
        self._asked = asked
        self._manifest: Any = None

    def run(self) -> None:
        """Run all steps; stop early if standard input is closed.

        Raises:
            DbtFailed: dbt failed.
            MillraceError: Spark does not start.
        """
        self._manifest = self._dbt("parse")
        # dbt does not rewrite an unchanged file.
        os.utime(TARGET / "manifest.json")
        spark = open_lake(self._home, "sandbox demo")
        try:
            message = next(self._asked, None)
            if message is None:
                return
            self._ingest()
            self._build(spark)
            # The build has compiled everything: only the catalog is queried.
            self._dbt("docs", "generate", "--no-compile")
            self._say(DOCUMENTED)
            self._report(spark, json.loads(message)["ends"])
        finally:
            spark.stop()

    def _ingest(self) -> None:
        """Ingest all topics as `spark-ingest run --once` does, in the existing Spark session."""
        from spark_ingest.cli import app

        # The services, which start after this process, may have made the sandbox secure.
        os.environ.update(self._home.environment())
        printed = StringIO()
        before = {number: signal.getsignal(number) for number in _STOPPING}
        try:
            with redirect_stdout(printed):
                app(["run", *self._scenario.ingest, "--once"], standalone_mode=False)
        finally:
            # Ingest's handlers finish the current batch; dbt has no batches.
            for number, handler in before.items():
                signal.signal(number, handler)
            print(printed.getvalue(), end="", flush=True)
        batches = [line for line in json_lines(printed.getvalue()) if "rows" in line]
        rows = sum(batch["rows"] for batch in batches)
        quarantined = sum(batch["quarantined"] for batch in batches)
        self._say(INGESTED, rows=rows, quarantined=quarantined)

    def _build(self, spark: SparkSession) -> None:
        from spark_ingest.streaming.captured_topics import was_filled

        manifest = json.loads((TARGET / "manifest.json").read_text())
        sources = exclusions.unfilled(manifest, lambda table: was_filled(spark, table))
        group = self._scenario.group
        self._dbt("build", *exclusions.selection(manifest, sources, group))
        self._say(BUILT, left_out=exclusions.summary(manifest, sources, group))

    def _report(self, spark: SparkSession, ends: Mapping[str, Mapping[str, int]]) -> None:
        # JSON has no numbers as keys.
        numbered = {
            stream: {int(partition): end for partition, end in of.items()}
            for stream, of in ends.items()
        }
        counted = row_counts(spark, numbered)
        tops = {}
        for top in self._scenario.tops:
            if top.stream in self._scenario.streams:
                table = StringIO()
                write_table(spark.sql(top.query), table)
                tops[top.title] = table.getvalue()
        as_dicts = {name: asdict(counts) for name, counts in counted.items()}
        self._say(REPORT, row_counts=as_dicts, tops=tops)

    def _dbt(self, *arguments: str) -> Any:
        """Run dbt in this process and return its result.

        Raises:
            DbtFailed: It failed.
        """
        from dbt.cli.main import dbtRunner

        done = dbtRunner(manifest=self._manifest).invoke([*arguments])
        sys.stdout.flush()
        if done.success:
            return done.result
        # Node errors are printed already; an exception that aborted dbt is not.
        message = f"`dbt {' '.join(arguments)}` failed"
        raise DbtFailed(f"{message}: {done.exception}" if done.exception else message)

    def _say(self, event: str, **facts: Any) -> None:
        print(json.dumps({"event": event, **facts}), file=self._answers, flush=True)


def main() -> None:
    """Entry point; a failure is one line on standard error."""
    from spark_ingest.lake.jvm import JAVA_ERRORS, java_reason

    # The output of dbt and Java goes to the log, as standard error does.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        Marts(load_home(), SCENARIOS[sys.argv[1]], answers, iter(sys.stdin)).run()
    except MillraceError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except (*JAVA_ERRORS, OSError) as error:
        print(java_reason(error), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
