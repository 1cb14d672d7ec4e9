"""A lake of its own, and the process that works on it: its JVM has the project's settings.

``Worker`` lives in the benchmark's process; the functions that it is given run in the other.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, ParamSpec, Self, TypeVar

from dbt.cli.main import dbtRunner
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from bench.increments.table_use import Queries, Query, TableUse, log_settings, use_by_table
from sandbox.install import spark_conf
from sandbox.settings import PROJECT, Home
from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.errors import MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.preflight import check_disk, check_spark
from spark_ingest.lake.session import silence_statement_log
from spark_ingest.sources import read_streams

# Where Iceberg's reports of commits are logged.
_REPORTS = "reports.log"
P = ParamSpec("P")
T = TypeVar("T")


class DbtFailed(MillraceError):
    """dbt did not build what is measured."""


class WrongResult(MillraceError):
    """A table does not hold what was sent: its times would say nothing."""


def prepare(folder: Path) -> None:
    """Make the folder of the lakes, after a look whether Spark can run and the disk has room."""
    check_spark()
    spark_conf.bring_spark()
    folder.mkdir(parents=True, exist_ok=True)
    check_disk(folder)


class Worker:
    """The process of one lake.

    Args:
        folder: For all that belongs to it; emptied.
    """

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        shutil.rmtree(folder, ignore_errors=True)
        spark_conf.render(self.home, self.home.spark_conf)
        with (self.home.spark_conf / "log4j2.properties").open("a") as file:
            file.write(log_settings(folder / _REPORTS, folder / "spark.log"))
        self._process = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_enter,
            initargs=(self.home,),
        )

    def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of a module in the lake's process; what it returns."""
        return self._process.submit(work, *args, **kwargs).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """End the process; the folder stays to be looked at when something failed."""
        if kind is not None:
            # The benchmark has no other processes, and their JVMs end with them.
            for process in multiprocessing.active_children():
                process.terminate()
        self._process.shutdown()
        if kind is None:
            shutil.rmtree(self.home.path, ignore_errors=True)


def _enter(home: Home) -> None:
    """Let nothing of the shell point this process's Spark or dbt elsewhere."""
    for name in list(os.environ):
        if name.startswith(("DBT_", "SPARK_")):
            del os.environ[name]
    os.environ.update(home.environment())
    threading.Thread(target=_end_with_the_benchmark, daemon=True).start()
    silence_statement_log()


def _end_with_the_benchmark() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def create_tables(spark: SparkSession, home: Home, wanted: Collection[str] = ()) -> None:
    """Make the bronze tables of streams, as ingest makes them.

    Args:
        spark: A session on the lake.
        home: The lake's.
        wanted: Tables; all that have a stream when empty.
    """
    run_dbt(home, ["parse"])
    manifest = _target(home) / "manifest.json"
    types = {
        f"{node['schema']}.{node['identifier']}": node["columns"].values()
        for node in json.loads(manifest.read_text())["sources"].values()
    }
    bronze.create_schema(spark)
    quarantine_table.create(spark)
    commit_log.create(spark)
    for stream in read_streams(manifest):
        if wanted and stream.table not in wanted:
            continue
        columns = DataType.fromDDL(
            ", ".join(f"{c['name']} {c['data_type']}" for c in types[stream.table])
        )
        if isinstance(columns, StructType):
            bronze.create_table(spark, stream.table, columns, stream.ingest.partitioned_by)


def rows_of_table(made: DataFrame, table: str, columns: Mapping[str, Column]) -> DataFrame:
    """Rows as a bronze table has them: null in the columns that are not given.

    Args:
        made: What the columns are made from.
        table: ``schema.name``; it exists.
        columns: By name; those that the table does not have are left out.
    """
    return made.select(
        [
            columns.get(column.name, F.lit(None)).cast(column.dataType).alias(column.name)
            for column in made.sparkSession.table(table).schema.fields
        ]
    )


@dataclass(frozen=True)
class Run:
    """A run of dbt.

    Attributes:
        seconds: All of it, in a process whose JVM is up.
        models: Seconds by model: to compile, finding what is new among it, and to execute.
    """

    seconds: float
    models: dict[str, float]


def _target(home: Home) -> Path:
    return home.path / "target"


def run_dbt(home: Home, words: list[str]) -> Run:
    """Run dbt in this process, as a person would type it.

    Raises:
        DbtFailed: It did not succeed.
    """
    begun = time.monotonic()
    done = dbtRunner().invoke(
        [
            *("--quiet", "--no-use-colors", "--log-path", str(home.logs)),
            *words,
            *("--project-dir", str(PROJECT)),
            *("--profiles-dir", str(PROJECT / "profiles")),
            *("--target-path", str(_target(home))),
        ]
    )
    seconds = time.monotonic() - begun
    results: list[Any] = getattr(done.result, "results", None) or []
    if not done.success:
        failed = [r for r in results if str(r.status) in {"error", "fail"}]
        reason = str(done.exception or (failed and failed[0].message) or "no reason")
        raise DbtFailed(f"dbt {words[0]}: {shorten(reason, 300)}; see {home.logs}")
    # Hooks have results of their own.
    timed = [r for r in results if r.timing and r.node.resource_type == "model"]
    return Run(
        seconds=seconds,
        models={
            result.node.name: sum(
                (part.completed_at - part.started_at).total_seconds()
                for part in result.timing
                if part.name in {"compile", "execute"}
            )
            for result in timed
        },
    )


@dataclass(frozen=True)
class Counted(Run):
    """A run of dbt, with what Spark and Iceberg counted in it.

    Attributes:
        load: Load average of the machine just before, over a minute.
        tables: What was done to each table (``schema.name``).
        queries: That ended in it.
    """

    load: float
    tables: dict[str, TableUse]
    queries: list[Query]


def counted(spark: SparkSession, home: Home, words: list[str]) -> Counted:
    """Run dbt as :func:`run_dbt` does, and count."""
    queries, reports = Queries(spark), home.path / _REPORTS
    last, reports_before = queries.last(), reports.stat().st_size
    load = os.getloadavg()[0]
    run = run_dbt(home, words)
    with reports.open() as file:
        file.seek(reports_before)
        tables = use_by_table(queries.scans_after(last), file)
    found = queries.queries_after(last)
    return Counted(run.seconds, run.models, load, tables, found)
