"""The demo's ingest, marts, docs and report: one process, one Spark, one parse of the project.

The demo runs it as a program of its own, beside the services. It parses the project and starts
Spark, then waits until the demo says that the records are on the broker; what each word of its
standard output means stands below. `spark-ingest run --once` and dbt's commands are those that a
person types: only Spark and the manifest are there already, and Java has compiled what it needs.
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
from sandbox.tour import left_out
from sandbox.tour.accounts import accounts
from sandbox.tour.query import open_lake, write_table
from sandbox.tour.scenarios import SCENARIOS, Scenario
from spark_ingest.errors import MillraceError
from spark_ingest.sources import target_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `spark-ingest run --once` has landed all; with it, its batches added up.
INGESTED = "ingested"
# dbt has built and tested; with it, what was left out.
BUILT = "built"
# The docs are there.
DOCUMENTED = "documented"
# What the broker took, what the tables hold, and what ranks first in marts.
REPORT = "report"

TARGET = target_folder(PROJECT)
_STOPPING = (signal.SIGINT, signal.SIGTERM)


class DbtFailed(MillraceError):
    """A command of dbt did not end well; what it printed says how."""


class Marts:
    """dbt in this process, with the manifest that it parsed at the start."""

    def __init__(
        self, home: Home, scenario: Scenario, answers: IO[str], asked: Iterator[str]
    ) -> None:
        """Bind the work to its lake and to whoever listens.

        Args:
            answers: Takes a line of JSON for each thing that is done.
            asked: A line of JSON when the records are on the broker: ``ends`` are the end
                offsets by stream and partition before which each must be found.
        """
        self._home = home
        self._scenario = scenario
        self._answers = answers
        self._asked = asked
        self._manifest: Any = None

    def run(self) -> None:
        """Do it all; nothing more when nobody listens any more.

        Raises:
            DbtFailed: dbt did not end well.
            MillraceError: Spark does not start.
        """
        self._manifest = self._dbt("parse")
        # dbt leaves the file as it is when nothing changed in it.
        os.utime(TARGET / "manifest.json")
        spark = open_lake(self._home, "sandbox demo")
        try:
            told = next(self._asked, None)
            if told is None:
                return
            self._ingest()
            self._build(spark)
            # Compiled is what was built: only the catalogue is asked for.
            self._dbt("docs", "generate", "--no-compile")
            self._say(DOCUMENTED)
            self._report(spark, json.loads(told)["ends"])
        finally:
            spark.stop()

    def _ingest(self) -> None:
        """Land what the topics hold, as `spark-ingest run --once` on the Spark that is there."""
        from spark_ingest.cli import app

        printed = StringIO()
        before = {number: signal.getsignal(number) for number in _STOPPING}
        try:
            with redirect_stdout(printed):
                app(["run", *self._scenario.ingest, "--once"], standalone_mode=False)
        finally:
            # They finish the batch at work first; dbt has none.
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
        sources = left_out.unfilled(manifest, lambda table: was_filled(spark, table))
        group = self._scenario.group
        self._dbt("build", *left_out.selection(manifest, sources, group))
        self._say(BUILT, left_out=left_out.told(manifest, sources, group))

    def _report(self, spark: SparkSession, ends: Mapping[str, Mapping[str, int]]) -> None:
        # JSON has no numbers as keys.
        numbered = {
            stream: {int(partition): end for partition, end in of.items()}
            for stream, of in ends.items()
        }
        counted = accounts(spark, numbered)
        tops = {}
        for top in self._scenario.tops:
            if top.stream in self._scenario.streams:
                table = StringIO()
                write_table(spark.sql(top.query), table)
                tops[top.title] = table.getvalue()
        told = {name: asdict(account) for name, account in counted.items()}
        self._say(REPORT, accounts=told, tops=tops)

    def _dbt(self, *arguments: str) -> Any:
        """Run dbt in this process; what it returns.

        Raises:
            DbtFailed: It failed.
        """
        from dbt.cli.main import dbtRunner

        done = dbtRunner(manifest=self._manifest).invoke([*arguments])
        sys.stdout.flush()
        if done.success:
            return done.result
        # What a node lacks is printed already; what broke dbt off before is not.
        told = f"`dbt {' '.join(arguments)}` failed"
        raise DbtFailed(f"{told}: {done.exception}" if done.exception else told)

    def _say(self, event: str, **facts: Any) -> None:
        print(json.dumps({"event": event, **facts}), file=self._answers, flush=True)


def main() -> None:
    """The program; a failure is one line on standard error."""
    from spark_ingest.lake.jvm import JAVA_ERRORS, java_reason

    # What dbt and Java print is for the log, which standard error goes to.
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
