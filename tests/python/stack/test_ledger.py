"""The ledger that dbt keeps and `spark-ingest verify` say the same, of good tables and bad.

dbt runs on a copy of the project in which a stream of the test is declared, as any stream
is: by a block of YAML, and nothing in the models.

Fails when dbt's ledger and `spark-ingest verify` disagree on a good table, a lost or a doubled
row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.python.project_copy import copy_project
from tests.python.stack.conftest import ORDER, Feed, dbt_here, orders, proofs
from tests.python.stack.test_recover import expire
from tests.python.stack.test_timestamps_out_of_range import (
    CLASS,
    MICROS,
    MILLIS,
    NANOS,
    send,
    take_any_timestamp,
)

# Of a partition: first and end offset, rows, quarantined, empty, given up, missing, doubled.
Books = dict[tuple[str, int], tuple[int, ...]]

SOURCE = """
sources:
  - name: test
    description: Orders of a test.
    schema: bronze
    loader: spark-ingest
    tables:
      - name: {name}
        identifier: {identifier}
        description: One row per order.
        config:
          meta:
            ingest:
              topic: {topic}
"""
LEDGER = """
select bronze_table, kafka_partition, coalesce(first_offset, 0), coalesce(last_offset + 1, 0),
    bronze_row_count, quarantined_count, empty_count, given_up_count, gap_count,
    duplicate_count, uncommitted_count
from lake.marts.rpt_ingest_ledger
"""


@dataclass
class Keeper:
    """A project in which the feed's stream is declared, and its lake."""

    feed: Feed
    project: Path
    streams: dict[str, str]

    @property
    def manifest(self) -> Path:
        return self.project / "target" / "manifest.json"

    def dbt(self, *words: str) -> bool:
        """Run dbt in this process, on its Spark; whether it succeeded."""
        feed = self.feed
        where = (self.project, self.project)
        done = dbt_here(feed.stack, feed.services.spark, *where, *words)
        return bool(done["success"])

    def build(self, *select: str) -> bool:
        """Build models and run the tests that are ours alone, not each `unique`."""
        leave_out = ("--exclude-resource-type", "unit_test")
        only = ("--exclude", "test_type:generic", "--select", *select)
        return self.dbt("build", *leave_out, *only)

    def ledger(self) -> Books:
        """What the mart says; each row of bronze belongs to a commit."""
        rows = self.feed.services.spark.sql(LEDGER).collect()
        assert {row[-1] for row in rows} == {0}
        return {
            (self.streams[row[0]], row[1]): tuple(row[2:-1])
            for row in rows
            if row[0] in self.streams
        }

    def gaps(self) -> list[tuple[int, int, bool]]:
        """First and last offset of each gap of the feed, and whether it is explained."""
        rows = self.feed.services.spark.table("lake.marts.rpt_ingest_gaps")
        mine = rows.where(rows["bronze_table"] == self.feed.stream.table)
        columns = ("first_offset", "last_offset", "is_explained")
        return sorted(tuple(row) for row in mine.select(*columns).collect())

    def verified(self) -> Books:
        """What `spark-ingest verify` prints of the good tables."""
        words = ("verify", *self.streams.values())
        done = self.feed.command(*words, manifest=self.manifest)
        assert done.exit_code == 0, done.output
        books: Books = {}
        for line in done.stdout.splitlines():
            if line.startswith("│"):
                name, *cells = (cell.strip() for cell in line.strip("│").split("│"))
                partition, *counts = (int(cell.replace(",", "")) for cell in cells)
                # The last is the lag, which the tables know nothing of.
                books[name, partition] = tuple(counts[:-1])
        return books


@pytest.fixture
def keeper(feed: Feed, tmp_path: Path) -> Keeper:
    """A copy of the project with the feed as one more stream."""
    project = copy_project(tmp_path / "project")
    folder = project / "models" / "staging" / "test"
    folder.mkdir()
    table = feed.stream.table.partition(".")[2]
    block = SOURCE.format(
        name=feed.stream.name.partition(".")[2], identifier=table, topic=feed.topic
    )
    (folder / "_test__sources.yml").write_text(block)
    streams = {"bronze.pagila__sales": "pagila.sales", feed.stream.table: feed.stream.name}
    return Keeper(feed, project, streams)


def send_in_transactions(feed: Feed, values: list[bytes]) -> None:
    """Send three transactions of the same values to partition 0; the second is aborted."""
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(30)
    ends: list[Callable[[float], None]] = [
        producer.commit_transaction,
        producer.abort_transaction,
        producer.commit_transaction,
    ]
    for end in ends:
        producer.begin_transaction()
        for value in values:
            producer.produce(feed.topic, value, b"k", 0)
        producer.flush(30)
        end(30)


@pytest.mark.nightly
def test_the_ledger_says_what_verify_says(keeper: Keeper) -> None:
    feed = keeper.feed
    produced = feed.stack.run(
        "sandbox", "produce", "pagila", "--count", "200", "--late", "0.1", "--bad", "0.1",
    )  # fmt: skip
    assert "bad" in produced.stdout + produced.stderr
    assert keeper.dbt("parse")
    landed = feed.command("run", "pagila", "--once", manifest=keeper.manifest)
    assert landed.exit_code == 0, landed.output
    number = feed.register(ORDER)
    # Offsets 0 to 2 and 8 to 10; 3, 7 and 11 are markers, 4 to 6 were aborted.
    send_in_transactions(feed, orders(number, 0, 3))
    feed.send(*orders(number, 10, 4), b"junk", partition=1)
    feed.ingest()

    assert keeper.build("+rpt_ingest_ledger")

    books = keeper.ledger()
    assert books == keeper.verified()
    pagila = [counts for (name, _), counts in books.items() if name == "pagila.sales"]
    assert sum(counts[2] for counts in pagila) >= 180
    assert sum(counts[3] for counts in pagila) >= 20
    (first, end, rows, *others) = books[feed.stream.name, 0]
    assert (first, rows, others) == (0, 6, [0, end - 6, 0, 0, 0])
    assert books[feed.stream.name, 1] == (0, 5, 4, 1, 0, 0, 0, 0)

    spark = feed.services.spark
    spark.sql(f"delete from {feed.table} where _kafka_partition = 0 and _kafka_offset = 1")
    spark.sql(
        f"insert into {feed.table} select * from {feed.table} "
        "where _kafka_partition = 1 and _kafka_offset = 2"
    )
    proved = {
        (proof.stream, proof.partition): (
            proof.first, proof.end, proof.bronze, proof.quarantined, proof.empty,
            proof.given_up, sum(end - first for first, end in proof.missing), proof.doubled,
        )
        for proof in proofs(feed)
    }  # fmt: skip
    # Ingest goes on between the models of one build: the log was read before.
    feed.send(*orders(number, 20, 3), b"more junk", partition=1)
    feed.ingest()

    assert not keeper.build("int_ops__ranges_held+")
    results = json.loads((keeper.project / "target" / "run_results.json").read_text())
    failed = {
        result["unique_id"].split(".")[2]
        for result in results["results"]
        if result["status"] == "fail"
    }
    assert failed == {"assert_no_record_is_lost", "assert_no_record_is_doubled"}
    books = keeper.ledger()
    assert books[feed.stream.name, 0] == (0, end, 5, 0, end - 6, 0, 1, 0)
    assert books[feed.stream.name, 1] == (0, 5, 5, 1, 0, 0, 0, 1)
    assert proved.items() <= books.items()
    # The log knows that one of these was a record, and the broker which.
    assert keeper.gaps()[0] == (1, 1, False)


@pytest.mark.long
def test_a_table_recreated_shows_no_gap_of_the_one_that_is_gone(keeper: Keeper) -> None:
    feed = keeper.feed
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 3), b"junk")
    feed.send(*orders(number, 3, 2), partition=1)
    feed.ingest()
    feed.services.spark.sql(f"drop table {feed.table}")
    expire(feed, 0, 2)
    feed.ingest()
    assert feed.log().count() == 3

    assert keeper.build("+rpt_ingest_ledger")

    mine = {
        partition: counts
        for (name, partition), counts in keeper.ledger().items()
        if name == feed.stream.name
    }
    assert mine == {0: (2, 4, 1, 1, 0, 0, 0, 0), 1: (0, 2, 2, 0, 0, 0, 0, 0)}
    assert [(p.first, p.end, p.bronze, p.quarantined, p.holds) for p in proofs(feed)] == [
        (2, 4, 1, 1, True),
        (0, 2, 2, 0, True),
    ]
    assert keeper.gaps() == []


@pytest.mark.nightly
def test_timestamps_of_any_unit_are_accounted_for(keeper: Keeper) -> None:
    feed = keeper.feed
    take_any_timestamp(feed)
    good = orders(feed.register(ORDER), 0, 4)
    send(feed, (good[0], MILLIS), (good[1], NANOS), (good[2], MICROS), (b"junk", MICROS))
    send(feed, (good[3], NANOS), partition=1)
    feed.ingest()

    ops = ("+rpt_ingest_ledger", "+rpt_quarantine", "+rpt_ingest_freshness")
    assert keeper.dbt("build", "--select", *ops)

    books = keeper.ledger()
    assert books[feed.stream.name, 0] == (0, 4, 2, 2, 0, 0, 0, 0)
    assert books[feed.stream.name, 1] == (0, 1, 0, 1, 0, 0, 0, 0)
    spark = feed.services.spark
    reasons = spark.table("lake.marts.rpt_quarantine").where(f"kafka_topic = '{feed.topic}'")
    counted = reasons.select("error_class", "record_count").collect()
    assert sorted(tuple(row) for row in counted) == [("not_framed", 1), (CLASS, 2)]
    hours = spark.table("lake.marts.rpt_ingest_freshness").where(
        f"bronze_table = '{feed.stream.table}'"
    )
    # As text: Python's own times end with the year 9999.
    reported = hours.selectExpr("string(hour_start_at)", "kafka_to_ingest_max_seconds > 0")
    assert sorted(tuple(row) for row in reported.collect()) == [
        ("+55840-11-08 22:00:00", False), ("2023-11-14 22:00:00", True),
    ]  # fmt: skip
