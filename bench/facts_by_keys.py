"""What an increment of a fact with one row per row of a captured table costs, by its rows.

::

    python -m bench.facts_by_keys                 # 0.2, 1 and 5 million sales
    python -m bench.facts_by_keys --quick         # does it work? Says nothing of cost
    python -m bench.facts_by_keys --write-docs    # and put the results into the docs

The fact is `fct_ticket_sales`, which takes attributes from four more captured tables. Their records
are made by Spark from numbers: a snapshot, then updates of rows all over the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from bench.increments.table_use import TableUse
from bench.increments.worker import (
    Counted,
    Worker,
    WrongResult,
    counted,
    create_tables,
    prepare,
    rows_of_table,
    run_dbt,
)
from bench.report.machine import Measurement
from bench.report.results import About, Cell, Results, Spread, Table, number_of
from bench.run import FOLDER, Benchmark, Folder, Quick, beyond, numbers
from sandbox.settings import Home
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError

SIZES = "200000,1000000,5000000"
QUICK_SIZES = "4000,8000"
RATIO = "times a full refresh"
# An increment of a large fact that costs more than a full refresh is of no use. Of a small one both
# are mostly planning.
LIMIT, LARGE = 1.0, 1_000_000
FACT = "fct_ticket_sales"
# What changes, and the history that an increment of the fact follows for it.
CHANGED = {"sale": "int_tickit__sale_history", "user": "int_tickit__user_history"}
PARTITIONS = 4
# Prime to every number of rows: they are whole thousands, and quarters of these.
STRIDE = 7919
CHANGED_QUANTITY = 9
_BEGUN_MILLIS = 1_772_323_200_000
_DAYS = 365
_CATEGORIES = 11
MIB = 2**20


def beyond_limits(results: Results) -> list[str]:
    """Which increments of large facts cost more than a full refresh."""
    table = results.table("facts_by_keys")
    return beyond(table, RATIO, LIMIT, lambda row: number_of(row[0]) >= LARGE)


BENCHMARK = Benchmark(
    "facts_by_keys",
    beyond=beyond_limits,
    trial=lambda options: "quick-facts-by-keys.json" if options["quick"] else None,
)


@dataclass(frozen=True)
class Captured:
    """A captured table.

    Attributes:
        topic: Its Kafka topic.
        rows: How many, by the number of sales.
        columns: By its row from 0, whether it was updated, and the number of sales.
    """

    topic: str
    rows: Callable[[int], int]
    columns: Callable[[Column, Column, int], dict[str, Column]]


@dataclass
class Fact:
    """One size of the fact.

    Attributes:
        rows: Its rows.
        refreshes: Seconds of full refreshes of the fact, whose histories are built.
        increments: Runs of the fact by the captured table that changed before them.
    """

    rows: int
    refreshes: list[float] = field(default_factory=list)
    increments: dict[str, list[Counted]] = field(
        default_factory=lambda: {name: [] for name in CHANGED}
    )


def facts_by_keys(
    sizes: Annotated[
        str, typer.Option(help="Rows of the fact: whole thousands, commas between.")
    ] = SIZES,
    changes: Annotated[int, typer.Option(help="Updated rows of one increment.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Increments of each kind.")] = 3,
    folder: Folder = FOLDER,
    quick: Quick = False,
) -> Iterator[Results]:
    """Measure what an increment of a fact by keys costs, and a full refresh of it.

    Each size has a lake and a JVM of its own, with the project's Spark settings. The lakes take
    turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 within the limit, 1 an increment of a million rows costs more than a full
    refresh, 2 wrong use.
    """
    if quick:
        sizes, changes, rounds = QUICK_SIZES, 500, 1
    rows = sizes_of(sizes, changes)
    measurement = Measurement(BENCHMARK.name)
    yield results_of(measure(rows, changes, rounds, folder), changes, measurement.about())


def measure(sizes: list[int], changes: int, rounds: int, folder: Path) -> list[Fact]:
    """Fill and build all lakes, then let them take turns.

    Args:
        sizes: Rows of the fact, from the smallest.
        changes: Updated rows of an increment.
        rounds: Increments of each kind, and full refreshes, after one that does not count.
        folder: For the lakes.
    """
    prepare(folder)
    with ExitStack() as stack:
        lakes = [stack.enter_context(Lake(folder / f"facts-{rows}", rows)) for rows in sizes]
        for lake in lakes:
            say(f"{lake.rows:>12,} rows  built: {lake.build():.1f} s")
        found = [Fact(rows) for rows in sizes]
        for number in range(rounds + 1):
            for lake, fact in zip(lakes, found, strict=True):
                # A JVM that has just started is slow.
                _round(lake, changes, fact if number else Fact(lake.rows))
        for lake in lakes:
            lake.check()
    return found


def _round(lake: Lake, changes: int, fact: Fact) -> None:
    for name, runs in fact.increments.items():
        runs.append(lake.change(name, changes))
        say(f"{lake.rows:>12,} rows  {changes:,} of {name}: {runs[-1].seconds:.1f} s")
    fact.refreshes.append(lake.refresh())
    say(f"{lake.rows:>12,} rows  full refresh: {fact.refreshes[-1]:.1f} s")


class Lake(Worker):
    """One size of the fact and the process that works on it.

    Args:
        folder: For all that belongs to it; emptied.
        rows: Rows of the fact.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        super().__init__(folder)
        self.rows = rows
        self._updates = dict.fromkeys(CHANGED, 0)
        self._commits = 1

    def build(self) -> float:
        """Make the snapshots in bronze, and build the fact with all that is below it."""
        return self.do(_build, self.home, self.rows)

    def change(self, name: str, changes: int) -> Counted:
        """Update rows of a captured table, and run its history, then the fact: this is measured."""
        self._commits += 1
        first = TABLES[name].rows(self.rows) + self._updates[name]
        self._updates[name] += changes
        return self.do(_change, self.home, name, self.rows, first, changes, self._commits)

    def refresh(self) -> float:
        """Build the fact anew from its histories; its seconds."""
        return self.do(_run, self.home, "--full-refresh").seconds

    def check(self) -> None:
        """Compare the fact with what was sent.

        Raises:
            WrongResult: It has lost or doubled a sale, or an update of one.
        """
        self.do(_check, (self.rows, min(self._updates["sale"], self.rows)))


def _build(home: Home, rows: int) -> float:
    spark = SparkSession.builder.getOrCreate()
    create_tables(spark, home, [_bronze(name) for name in TABLES])
    for name, table in TABLES.items():
        _append(spark, name, rows, 0, table.rows(rows), 1)
    kinds = ["--exclude-resource-type", "test", "unit_test"]
    return run_dbt(home, ["build", "--select", f"+{FACT}", *kinds]).seconds


def _change(home: Home, name: str, rows: int, first: int, count: int, commit_id: int) -> Counted:
    _append(SparkSession.builder.getOrCreate(), name, rows, first, first + count, commit_id)
    run_dbt(home, ["run", "--select", CHANGED[name]])
    return _run(home)


def _run(home: Home, *options: str) -> Counted:
    spark = SparkSession.builder.getOrCreate()
    return counted(spark, home, ["run", "--select", FACT, *options])


def _check(wanted: tuple[int, int]) -> None:
    query = f"select count(*), count_if(sold_ticket_count = {CHANGED_QUANTITY}) from marts.{FACT}"
    found = tuple(SparkSession.builder.getOrCreate().sql(query).collect()[0])
    if found != wanted:
        raise WrongResult(
            f"sales, and updated ones, of marts.{FACT} are {found}, not {wanted}:"
            " run `pytest -m nightly tests/python/spark/test_random_tickets.py`"
        )


def _bronze(name: str) -> str:
    return f"bronze.tickit__{name}"


def _append(
    spark: SparkSession, name: str, rows: int, first: int, end: int, commit_id: int
) -> None:
    """Commit records ``first`` to ``end``: rows of the snapshot, then updates."""
    table = TABLES[name]
    count, number = table.rows(rows), F.col("id")
    is_snapshot = number < count
    row = F.when(is_snapshot, number).otherwise((number - count) * STRIDE % count)
    columns = table.columns(row, ~is_snapshot, rows)
    key_column = next(iter(columns))
    # Updates are later than all rows of all snapshots: of no sale they are late.
    millis = F.when(is_snapshot, number).otherwise(number + rows) + _BEGUN_MILLIS
    known = {
        **columns,
        "__op": F.when(is_snapshot, "r").otherwise("u"),
        "__table": F.lit(name),
        "__lsn": number,
        "__source_ts_ms": millis,
        "__source_file": F.lit("mysql-bin.000001"),
        "__source_pos": number,
        "__source_row": F.lit(0),
        "__deleted": F.lit("false"),
        "_key": F.struct(columns[key_column].cast("int").alias(key_column)),
        "_kafka_topic": F.lit(table.topic),
        "_kafka_topic_id": F.lit(f"bench-{table.topic}"),
        "_kafka_partition": row % PARTITIONS,
        "_kafka_offset": number,
        "_kafka_timestamp": F.timestamp_millis(millis),
        "_schema_id": F.lit(1),
        "_is_tombstone": F.lit(False),
        "_ingested_at": F.timestamp_millis(F.lit(end + rows + _BEGUN_MILLIS)),
        "_commit_id": F.lit(commit_id),
    }
    made = spark.range(first, end, 1, PARTITIONS)
    rows_of_table(made, _bronze(name), known).writeTo(_bronze(name)).append()


def _users(sales: int) -> int:
    return sales // 4


def _events(sales: int) -> int:
    return sales // 20


def _text(word: str, row: Column) -> Column:
    return F.concat(F.lit(f"{word} "), row.cast("string"))


def _micros(row: Column) -> Column:
    return row * 1_000_000 + _BEGUN_MILLIS * 1000


def _sale(row: Column, is_updated: Column, sales: int) -> dict[str, Column]:
    price = row % 500 + 20
    return {
        "saleid": row + 1,
        "listid": row + 1,
        "sellerid": row * 31 % _users(sales) + 1,
        "buyerid": row * 17 % _users(sales) + 1,
        "eventid": row % _events(sales) + 1,
        "dateid": row % _DAYS + 1,
        "qtysold": F.when(is_updated, CHANGED_QUANTITY).otherwise(row % 8 + 1),
        "pricepaid": price,
        "commission": price * F.lit("0.15").cast("decimal(3,2)"),
        "saletime": _micros(row),
    }


def _user(row: Column, is_updated: Column, _sales: int) -> dict[str, Column]:
    city = F.when(is_updated, F.lit("new city")).otherwise(F.lit("city"))
    return {
        "userid": row + 1,
        "username": _text("user", row),
        "firstname": _text("first", row % 1000),
        "lastname": _text("last", row % 7919),
        "city": F.concat(city, (row % 600).cast("string")),
        "state": F.lit("WA"),
        "email": _text("mail", row),
        "phone": _text("phone", row),
    }


def _event(row: Column, _is_updated: Column, _sales: int) -> dict[str, Column]:
    return {
        "eventid": row + 1,
        "venueid": row % 200 + 1,
        "catid": row % _CATEGORIES + 1,
        "dateid": row % _DAYS + 1,
        "eventname": _text("event", row),
        "starttime": _micros(row),
    }


def _category(row: Column, _is_updated: Column, _sales: int) -> dict[str, Column]:
    return {
        "catid": row + 1,
        "catgroup": _text("group", row % 3),
        "catname": _text("category", row),
        "catdesc": _text("about", row),
    }


def _date(row: Column, _is_updated: Column, _sales: int) -> dict[str, Column]:
    return {
        "dateid": row + 1,
        "caldate": row + 20_454,
        "day": F.lit("MO"),
        "week": row / 7 + 1,
        "month": F.lit("JAN"),
        "qtr": F.lit("1"),
        "year": F.lit(2026),
        "holiday": F.lit(0),
    }


# The first column of each is its key.
TABLES = {
    "sale": Captured("tickit.ecomm.sale", int, _sale),
    "user": Captured("tickit.crm.user", _users, _user),
    "event": Captured("tickit.ems.event", _events, _event),
    "category": Captured("tickit.ems.category", lambda _: _CATEGORIES, _category),
    "date": Captured("tickit.ecomm.date", lambda _: _DAYS, _date),
}


def results_of(facts: list[Fact], changes: int, about: About) -> Results:
    """Cost by the rows of the fact and what changed.

    Args:
        facts: From the smallest to the largest.
        changes: Updated rows of an increment.
        about: When, where and how.
    """
    columns = {
        "rows": 0, "updated rows of": 0, "full refresh, s": 1, "increment, s": 1, RATIO: 2,
        "files opened": 0, "MiB of them": 1, "files written": 0, "MiB written": 1,
    }  # fmt: skip
    rows: list[list[Cell]] = [
        _row(fact, name, runs) for fact in facts for name, runs in fact.increments.items()
    ]
    loads = [run.load for fact in facts for runs in fact.increments.values() for run in runs]
    summary = (
        f"{changes:,} updates an increment, each of another row; {len(facts[0].refreshes)}"
        " increments of each kind count, after one that does not."
        f" Load before each: {min(loads):.1f} to {max(loads):.1f}."
    )
    return Results(parts={"facts_by_keys": [Table(columns=columns, rows=rows), summary, about]})


def _row(fact: Fact, name: str, runs: list[Counted]) -> list[Cell]:
    seconds = [run.seconds for run in runs]

    def uses(of: Callable[[TableUse], float]) -> float:
        return median(sum(map(of, run.tables.values())) for run in runs)

    return [
        *(fact.rows, f"`{name}`", median(fact.refreshes)),
        *(Spread.of(seconds), Spread.of_ratios(seconds, fact.refreshes)),
        *(uses(lambda use: use.files_read), uses(lambda use: use.bytes_read) / MIB),
        uses(lambda use: use.files_written + use.delete_files_written),
        uses(lambda use: use.bytes_written) / MIB,
    ]


def sizes_of(text: str, changes: int) -> list[int]:
    """The rows of facts that ``--sizes`` names, the smallest first.

    Raises:
        ConfigurationError: Not whole thousands, or fewer users than changes.
    """
    sizes = numbers(text, SIZES)
    if any(rows <= 0 or rows % 1000 or rows % STRIDE == 0 for rows in sizes):
        raise ConfigurationError(f"--sizes must be whole thousands of rows, not of {STRIDE}")
    if not 0 < changes <= _users(sizes[0]):
        raise ConfigurationError(
            f"--changes: at most {_users(sizes[0])}, the users of the smallest fact"
        )
    return sizes


if __name__ == "__main__":
    BENCHMARK.run(facts_by_keys)
