"""A lake with a history: filled, its facts built, then grown by increments.

``Lake`` lives in the benchmark's process and hands each step to a process of the lake's own,
whose JVM has the project's settings and opens no other lake.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from bench.increments import records
from bench.increments.table_use import Queries, bytes_read, log_settings, use_by_table
from bench.report.increments_results import Build, Increment, ModelTime
from sandbox.install import spark_conf
from sandbox.settings import PROJECT, Home
from sandbox.streams.smoothies.catalogue import catalogue
from spark_ingest.errors import MillraceError
from spark_ingest.lake import bronze, commit_log, quarantine_table
from spark_ingest.lake.session import silence_statement_log
from spark_ingest.sources import read_streams

COMMIT_ROWS = 250_000
FACTS = sorted(file.stem for file in PROJECT.glob("models/marts/*/fct_*.sql"))
# Not a fact, and so small that it is rebuilt each time.
BUILT = [*FACTS, "dim_products"]


class DbtFailed(MillraceError):
    """dbt did not build the facts."""


class WrongResult(MillraceError):
    """The facts do not hold what was sent: their times would say nothing."""


@dataclass(frozen=True)
class Size:
    """How much there is.

    Attributes:
        history: Sales of the history, and as many purchase lines.
        increment: Of each in one increment.
    """

    history: int
    increment: int


class Lake:
    """One history and the process that works on it.

    Args:
        folder: For all that belongs to it; emptied.
        size: How much there is.
    """

    def __init__(self, folder: Path, size: Size) -> None:
        self.size = size
        self._home = Home(folder)
        shutil.rmtree(folder, ignore_errors=True)
        spark_conf.render(self._home, self._home.spark_conf)
        with (self._home.spark_conf / "log4j2.properties").open("a") as file:
            file.write(
                log_settings(_reports(self._home), self._home.path / "spark.log")
            )
        self._rounds = 0
        self._process = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_enter,
            initargs=(self._home,),
        )

    def fill(self) -> float:
        """Make the history's bronze tables; the seconds it took."""
        return self._process.submit(_fill, self._home, self.size).result()

    def build(self) -> Build:
        """Build all facts from the whole history, as a full refresh does."""
        return self._process.submit(_build, self._home).result()

    def grow(self) -> Increment:
        """Commit one increment of records to bronze, and run the increment of the facts.

        Only the run is measured.
        """
        first = self.size.history + self._rounds * self.size.increment
        self._rounds += 1
        return self._process.submit(
            _grow, self._home, self.size, first, self._rounds
        ).result()

    def check(self) -> None:
        """Compare the facts with what was sent.

        Raises:
            WrongResult: A fact has lost or doubled a record.
        """
        sent = self.size.history + self._rounds * self.size.increment
        self._process.submit(_check, self.size, sent).result()

    def close(self) -> None:
        """End the process, and remove the folder."""
        self._process.shutdown()
        shutil.rmtree(self._home.path, ignore_errors=True)

    def abandon(self) -> None:
        """End the process, whatever it does, and leave the folder to be looked at."""
        # The benchmark has no other processes, and their JVMs end with them.
        for process in multiprocessing.active_children():
            process.terminate()
        self._process.shutdown()


def _reports(home: Home) -> Path:
    return home.path / "reports.log"


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


def _fill(home: Home, size: Size) -> float:
    begun = time.monotonic()
    spark = SparkSession.builder.getOrCreate()
    _create_tables(spark, home)
    listed = records.Numbers(size.history, size.increment, 0, len(catalogue()))
    _commit(spark, records.PRODUCTS, listed, commit_id=1)
    for commit_id, first in enumerate(range(0, size.history, COMMIT_ROWS), start=1):
        end = min(first + COMMIT_ROWS, size.history)
        _commit_sales(spark, size, first, end, commit_id)
    return time.monotonic() - begun


def _create_tables(spark: SparkSession, home: Home) -> None:
    _dbt(home, ["parse"])
    manifest = _target(home) / "manifest.json"
    types = {
        f"{node['schema']}.{node['identifier']}": node["columns"].values()
        for node in json.loads(manifest.read_text())["sources"].values()
    }
    bronze.create_schema(spark)
    quarantine_table.create(spark)
    commit_log.create(spark)
    for stream in read_streams(manifest):
        columns = DataType.fromDDL(
            ", ".join(f"{c['name']} {c['data_type']}" for c in types[stream.table])
        )
        if isinstance(columns, StructType):
            bronze.create_table(
                spark, stream.table, columns, stream.ingest.partitioned_by
            )


def _commit_sales(
    spark: SparkSession, size: Size, first: int, end: int, commit_id: int
) -> None:
    """One commit of sales, one of purchase lines, one of the restockings they need."""
    numbers = records.Numbers(size.history, size.increment, first, end)
    _commit(spark, records.SALES, numbers, commit_id)
    _commit(spark, records.PURCHASES, numbers, commit_id)
    _commit(
        spark, records.INVENTORIES, numbers.of_each(records.RESTOCKING_OF), commit_id
    )


def _commit(
    spark: SparkSession, table: str, numbers: records.Numbers, commit_id: int
) -> None:
    columns = {
        records.SALES: records.sales,
        records.PURCHASES: records.purchases,
        records.INVENTORIES: records.inventories,
        records.PRODUCTS: records.products,
    }[table](numbers)
    records.bronze_rows(spark, table, numbers, columns, commit_id).writeTo(
        table
    ).append()


def _build(home: Home) -> Build:
    facts = [f"+{fact}" for fact in BUILT]
    run = _dbt(
        home,
        ["build", "--select", *facts, "--exclude-resource-type", "test", "unit_test"],
    )
    return Build(seconds=run.seconds, models=run.models)


def _grow(home: Home, size: Size, first: int, number: int) -> Increment:
    spark = SparkSession.builder.getOrCreate()
    commits = -(-size.history // COMMIT_ROWS)
    _commit_sales(spark, size, first, first + size.increment, commits + number)
    queries, reports = Queries(spark), _reports(home)
    last, reports_before = queries.last(), reports.stat().st_size
    load, bytes_before = os.getloadavg()[0], bytes_read(spark)
    run = _dbt(home, ["run", "--select", *BUILT])
    bytes_after = bytes_read(spark)
    with reports.open() as file:
        file.seek(reports_before)
        tables = use_by_table(queries.scans_after(last), file)
    return Increment(
        number=number,
        load=load,
        seconds=run.seconds,
        models_seconds=run.models_seconds,
        models=run.models,
        bytes_read=(
            None
            if bytes_before is None or bytes_after is None
            else bytes_after - bytes_before
        ),
        tables=tables,
    )


def _check(size: Size, sent: int) -> None:
    again = (sent - size.history) // records.AGAIN_OF
    wanted = {
        "fct_rental_sales": ("count(*)", sent - again),
        "fct_regional_sales_windows": ("sum(order_count)", 2 * (sent - again)),
        "fct_country_sales_windows": ("sum(order_count)", 2 * (sent - again)),
        "fct_purchases_enriched": ("count(*)", sent),
        "fct_product_daily_sales": ("sum(purchase_count)", sent),
        "fct_product_sales_windows": ("sum(purchase_count)", 2 * sent),
        "fct_product_running_totals": ("count(*)", sent),
    }
    spark = SparkSession.builder.getOrCreate()
    for fact, (measure, count) in wanted.items():
        found = spark.sql(f"select {measure} from marts.{fact}").first()
        if found is None or found[0] != count:
            raise WrongResult(
                f"{measure} of marts.{fact} is {found and found[0]}, not {count}: "
                "run `pytest tests/python/spark/test_increments.py`"
            )


@dataclass(frozen=True)
class _Run:
    seconds: float
    models_seconds: float
    models: dict[str, ModelTime]


def _target(home: Home) -> Path:
    return home.path / "target"


def _dbt(home: Home, words: list[str]) -> _Run:
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
    moments = [
        moment
        for result in timed
        for part in result.timing
        for moment in (part.started_at, part.completed_at)
        if moment is not None
    ]
    return _Run(
        seconds=seconds,
        models_seconds=(
            (max(moments) - min(moments)).total_seconds() if moments else 0.0
        ),
        models={
            result.node.name: ModelTime(
                **{
                    f"{part.name}_seconds": (
                        part.completed_at - part.started_at
                    ).total_seconds()
                    for part in result.timing
                    if part.name in {"compile", "execute"}
                }
            )
            for result in timed
        },
    )
