"""Random captured tables, and engines that make histories of them from one bronze."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, product
from random import Random
from typing import TYPE_CHECKING, Any

from redshift_connector.core import Connection

from tests.python.histories.cases import FORMS, PARTITIONS, Log, options_of
from tests.python.histories.lake import Change, Lake, bronze_columns, bronze_records
from tests.python.histories.options import ATTRIBUTES, EPOCH, Options
from tests.python.histories.sql import HistorySql, Names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRONZE = "random_bronze"
HISTORIES = "random_histories"
KEYS = ["number", "text", "compound"]
COMMITS = 2
ROWS = 60
TRANSACTIONS = 220
# How much of each partition the first commit has; the second one has the rest.
_FIRST = 70
# So far is a clock behind that the second half of what it says lies after 1969.
_BEHIND = datetime.fromisoformat("2026-01-01 00:01:00") - EPOCH
# Behind the key and the attributes: what the rules decide, and what they do not.
_RULED = ["is_deleted", "is_incomplete", "is_current", "valid_from_at", "valid_to_at"]
_RULED += ["valid_from_position"]
_OTHERS = ["valid_to_position", "seen_to_position", "seen_to_at", "version_key"]
_OTHERS += ["_kafka_topic_id", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
_OTHERS += ["_ingested_at", "_commit_id"]
COLUMNS = ["key_one", "key_two", *ATTRIBUTES, *_RULED, *_OTHERS]
RULED = len(COLUMNS) - len(_OTHERS)

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A captured table.

    Attributes:
        seed: What it is made of.
        options: Of the table.
        changes: Those of its records, in the order of their commits.
    """

    seed: int
    options: Options
    changes: tuple[Change, ...]

    def commit(self, number: int) -> list[Change]:
        """What one commit of ingest wrote."""
        return [change for change in self.changes if change.commit_id == number]

    def __str__(self) -> str:
        made = self.options
        return f"{made.form}_{made.position}_{made.keys}_{self.seed}"


@dataclass(frozen=True)
class OnSpark:
    """Spark with tables of Iceberg."""

    session: SparkSession
    dialect: str = "spark"
    # It plans a statement in one thread, which takes longer than these few rows do.
    at_once: int = 2

    def ask(self, statement: str) -> list[Row]:
        """Run one statement; its rows."""
        return [tuple(row) for row in self.session.sql(statement).collect()]

    def names(self, case: Case) -> Names:
        """Of a case's relations."""
        # The tests' catalog has no views.
        return Names(f"{BRONZE}.{case}", f"changes_{case}", f"{HISTORIES}.{case}")

    def write(self, cases: Sequence[Case]) -> None:
        """Write bronze, for the emulator too."""
        for name in (BRONZE, HISTORIES):
            self.ask(f"create namespace {name}")
        for case in cases:
            columns = bronze_columns(case.options)
            records = [
                record
                for number in range(1, COMMITS + 1)
                for record in bronze_records(case.commit(number), case.options, number)
            ]
            rows = [tuple(_in_utc(record.get(name)) for name in columns) for record in records]
            described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            written = self.session.createDataFrame(rows, described)
            written.coalesce(1).writeTo(self.names(case).bronze).create()

    def create_changes(self, case: Case, query: str) -> None:
        """Make a case's staging model."""
        name = self.names(case).changes
        self.ask(f"create or replace temporary view {name} as {query}")

    def create_history(self, case: Case, query: str) -> None:
        """Make a case's history, in place of the one that may be there."""
        name = self.names(case).history
        self.ask(f"create or replace table {name} using iceberg as {query}")

    def grow_history(self, case: Case, query: str, sql: HistorySql) -> None:
        """Bring into a case's history what is new."""
        fresh = f"fresh_{case}"
        self.ask(f"create or replace temporary view {fresh} as {query}")
        columns = self.session.table(self.names(case).history).columns
        self.ask(sql.replacement(fresh, columns))


@dataclass(frozen=True)
class OnStandin:
    """The Redshift emulator, which reads bronze in the lake."""

    connection: Connection
    dialect: str = "redshift"
    at_once: int = 1

    def ask(self, statement: str) -> list[Row]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            found = cursor.fetchall() if cursor.description else ()
            return [tuple(row) for row in found]

    def names(self, case: Case) -> Names:
        changes = f"{HISTORIES}.changes_{case}"
        return Names(f"{BRONZE}.{case}", changes, f"{HISTORIES}.{case}")

    def create_changes(self, case: Case, query: str) -> None:
        name = self.names(case).changes
        self.ask(f"create view {name} as {query} with no schema binding")

    def create_history(self, case: Case, query: str) -> None:
        name = self.names(case).history
        self.ask(f"drop table if exists {name}")
        self.ask(f"create table {name} as {query}")

    def grow_history(self, case: Case, query: str, sql: HistorySql) -> None:
        fresh = f"fresh_{case}"
        self.ask(f"create temporary table {fresh} as {query}")
        with self.connection.cursor() as cursor:
            cursor.execute(f"select * from {fresh} where false")
            columns = [column[0] for column in cursor.description]
        for statement in sql.replacement(fresh, columns).split(";\n"):
            self.ask(statement)


Engine = OnSpark | OnStandin


def cases(first_seed: int) -> list[Case]:
    """Tables of each form and position, and of each kind of keys, with any other options.

    Every second pair of the two; an even first seed takes the others.
    """
    wanted = set(list(product(FORMS, KEYS))[(first_seed + 1) % 2 :: 2])
    found = []
    for seed in count(first_seed):
        random = Random(seed)
        options = options_of(random)
        kind = (options.form, options.position), options.keys
        if kind in wanted:
            wanted.remove(kind)
            found.append(Case(seed, options, tuple(_changes(random, options))))
        if not wanted:
            break
    return found


def on_duckdb(case: Case, commits: int) -> list[Row]:
    """The history that a full build makes of the first commits on DuckDB."""
    lake = Lake(case.options)
    for number in range(1, commits + 1):
        lake.commit(case.commit(number))
    lake.build()
    return lake.db.execute(_selected(case, "history")).fetchall()


def stage(engine: Engine, cases: Sequence[Case]) -> None:
    """Make the staging models."""
    for case in cases:
        engine.create_changes(case, _sql(engine, case).changes())


def built_on(engine: Engine, cases: Sequence[Case]) -> dict[str, list[list[Row]]]:
    """By case, its history after a full build of the first commit, and after an increment."""
    with ThreadPoolExecutor(engine.at_once) as builders:
        built = builders.map(lambda case: _built_on(engine, case), cases)
        return dict(zip(map(str, cases), built, strict=True))


def _built_on(engine: Engine, case: Case) -> list[list[Row]]:
    sql = _sql(engine, case)
    selected = _selected(case, sql.names.history)
    engine.create_history(case, sql.versions(0, 1, is_full_refresh=True))
    sql.record()
    first = engine.ask(selected)
    query = sql.versions(1, COMMITS, is_full_refresh=False)
    if sql.is_full_refresh:
        engine.create_history(case, query)
    else:
        engine.grow_history(case, query, sql)
    return [first, engine.ask(selected)]


def _sql(engine: Engine, case: Case) -> HistorySql:
    columns = bronze_columns(case.options)
    return HistorySql(case.options, columns, engine.ask, engine.dialect, engine.names(case))


def _selected(case: Case, relation: str) -> str:
    """``COLUMNS`` of a history; keys and times are texts."""
    listed = []
    for name in COLUMNS:
        if name.startswith("key_"):
            value = name if name in case.options.key_types else "null"
            listed.append(f"cast({value} as varchar(512)) as {name}")
        elif name.endswith("_at") or name == "_kafka_timestamp":
            listed.append(f"cast({name} as varchar(32)) as {name}")
        else:
            listed.append(name)
    return f"select {', '.join(listed)} from {relation}"


def _changes(random: Random, options: Options) -> Iterator[Change]:
    log = Log(random, options, ROWS, is_scattered=random.random() < 0.3)
    has_old_clock = options.form != "rows" and random.random() < 0.5
    behind = _BEHIND if has_old_clock else timedelta()
    for number in range(1, COMMITS + 1):
        for _ in range(TRANSACTIONS):
            log.transaction()
        for partition in range(PARTITIONS):
            most = _FIRST if number < COMMITS else len(log.waiting[partition])
            for change in log.deliver(partition, most):
                yield replace(change, committed_at=change.committed_at - behind, commit_id=number)


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
