"""A lake with a history: filled, its facts built, then grown by increments.

``Lake`` lives in the benchmark's process and hands each step to a process of the lake's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.increments import records
from bench.increments.results import Increment
from bench.increments.table_use import bytes_read
from bench.increments.worker import Worker, WrongResult, counted, create_tables, run_dbt
from sandbox.settings import PROJECT, Home
from sandbox.streams.smoothies.catalogue import catalogue

COMMIT_ROWS = 250_000
FACTS = sorted(file.stem for file in PROJECT.glob("models/marts/*/fct_*.sql"))
# Not a fact, and so small that it is rebuilt each time.
BUILT = [*FACTS, "dim_products"]


@dataclass(frozen=True)
class Size:
    """How much there is.

    Attributes:
        history: Sales of the history, and as many purchase lines.
        increment: Of each in one increment.
    """

    history: int
    increment: int


class Lake(Worker):
    """One history and the process that works on it.

    Args:
        folder: For all that belongs to it; emptied.
        size: How much there is.
    """

    def __init__(self, folder: Path, size: Size) -> None:
        super().__init__(folder)
        self.size = size
        self._rounds = 0

    def fill(self) -> float:
        """Make the history's bronze tables; the seconds it took."""
        return self.do(_fill, self.home, self.size)

    def build(self) -> float:
        """Build all facts from the whole history, as a full refresh does; its seconds."""
        return self.do(_build, self.home)

    def grow(self) -> Increment:
        """Commit one increment of records to bronze, and run the increment of the facts.

        Only the run is measured.
        """
        first = self.size.history + self._rounds * self.size.increment
        self._rounds += 1
        return self.do(_grow, self.home, self.size, first, self._rounds)

    def check(self) -> None:
        """Compare the facts with what was sent.

        Raises:
            WrongResult: A fact has lost or doubled a record.
        """
        sent = self.size.history + self._rounds * self.size.increment
        self.do(_check, self.size, sent)


def _fill(home: Home, size: Size) -> float:
    begun = time.monotonic()
    spark = SparkSession.builder.getOrCreate()
    create_tables(spark, home)
    listed = records.Numbers(size.history, size.increment, 0, len(catalogue()))
    _commit(spark, records.PRODUCTS, listed, commit_id=1)
    for commit_id, first in enumerate(range(0, size.history, COMMIT_ROWS), start=1):
        end = min(first + COMMIT_ROWS, size.history)
        _commit_sales(spark, size, first, end, commit_id)
    return time.monotonic() - begun


def _commit_sales(spark: SparkSession, size: Size, first: int, end: int, commit_id: int) -> None:
    """One commit of sales, one of purchase lines, one of the restockings they need."""
    numbers = records.Numbers(size.history, size.increment, first, end)
    _commit(spark, records.SALES, numbers, commit_id)
    _commit(spark, records.PURCHASES, numbers, commit_id)
    _commit(spark, records.INVENTORIES, numbers.of_each(records.RESTOCKING_OF), commit_id)


def _commit(spark: SparkSession, table: str, numbers: records.Numbers, commit_id: int) -> None:
    columns = {
        records.SALES: records.sales,
        records.PURCHASES: records.purchases,
        records.INVENTORIES: records.inventories,
        records.PRODUCTS: records.products,
    }[table](numbers)
    records.bronze_rows(spark, table, numbers, columns, commit_id).writeTo(table).append()


def _build(home: Home) -> float:
    facts = [f"+{fact}" for fact in BUILT]
    no_tests = ["--exclude-resource-type", "test", "unit_test"]
    return run_dbt(home, ["build", "--select", *facts, *no_tests]).seconds


def _grow(home: Home, size: Size, first: int, number: int) -> Increment:
    spark = SparkSession.builder.getOrCreate()
    commits = -(-size.history // COMMIT_ROWS)
    _commit_sales(spark, size, first, first + size.increment, commits + number)
    before = bytes_read(spark)
    run = counted(spark, home, ["run", "--select", *BUILT])
    after = bytes_read(spark)
    read = None if before is None or after is None else after - before
    return Increment(run.load, run.seconds, run.models, read, run.tables)


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
