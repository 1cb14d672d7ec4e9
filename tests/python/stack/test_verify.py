"""What `spark-ingest verify` says of topics that are gone or slow to read.

Fails when `spark-ingest verify` misses what changed behind its mark, or waits for ever.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import NewTopic
from py4j.protocol import Py4JJavaError
from typer.testing import Result

from spark_ingest.connect import broker as reading
from tests.python.stack.conftest import ORDER, Feed, orders, wait_for
from tests.python.stack.test_recover import admin, forget_own_snapshots

if TYPE_CHECKING:
    from spark_ingest.connect.broker import Broker


@contextmanager
def away(feed: Feed, where: str) -> Iterator[None]:
    """The data files of some rows of the feed's table, out of sight."""
    rows = feed.services.spark.table(feed.table).where(where)
    names = [row[0] for row in rows.select("_file").distinct().collect()]
    files = [Path(name.removeprefix("file:")) for name in names]
    assert files
    for file in files:
        file.rename(f"{file}.away")
    try:
        yield
    finally:
        for file in files:
            Path(f"{file}.away").rename(file)


def books(done: Result) -> dict[int, tuple[int, ...]]:
    """By partition: first, end, bronze, quarantine, empty, given up."""
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("│"):
            _, *cells = (cell.strip() for cell in line.strip("│").split("│"))
            partition, *counts = (int(cell.replace(",", "")) for cell in cells)
            found[partition] = tuple(counts[:6])
    return found


def read_slowly(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each fetch bring a record or so, and soon count as none."""
    settings: dict[str, Any] = {**broker._cluster.settings}
    settings |= {"fetch.message.max.bytes": 1, "fetch.max.bytes": 1000}
    settings |= {"message.max.bytes": 1000, "receive.message.max.bytes": 1512}
    monkeypatch.setattr(broker._cluster, "settings", settings)
    monkeypatch.setattr(reading, "_STATISTICS_MS", 50)
    monkeypatch.setattr(reading, "_POLL_SECONDS", 0.05)


@pytest.mark.nightly
def test_a_long_aborted_transaction_is_waited_for_as_long_as_it_is_read(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"transactional.id": feed.topic, "batch.num.messages": "1"}
    producer = feed.producer(**settings)
    producer.init_transactions(30)
    (value,) = orders(feed.register(ORDER), 0, 1)
    for count, end in ((3000, producer.abort_transaction), (1, producer.commit_transaction)):
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(feed.topic, value, b"k", 0)
            producer.poll(0)
        producer.flush(30)
        end(30)
    broker = feed.services.broker
    # 3,000 records, a marker, one record, a marker.
    read_slowly(broker, monkeypatch)
    began = time.monotonic()
    assert broker.records_in(feed.topic, 0, [(0, 3001), (3001, 3002), (3002, 3003)]) == [
        (3001, 3002)
    ]
    took = time.monotonic() - began
    # With a limit that the whole exceeds by far.
    monkeypatch.setattr(reading, "_TIMEOUT", took / 4)
    assert broker.records_in(feed.topic, 0, [(0, 3001)]) == []


@pytest.mark.nightly
def test_the_next_proof_reads_what_is_new_and_notices_what_changed_before(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 3), b"junk")
    feed.ingest()
    feed.send(*orders(number, 3, 2), b"junk", partition=1)
    feed.ingest()
    first = feed.command("verify")
    assert (first.exit_code, "from the checkpoint" in first.stdout) == (0, False)
    feed.send(*orders(number, 4, 2), b"junk")
    feed.ingest()
    # What was proved is not opened again: it could not be.
    with away(feed, "_commit_id < 3"):
        second = feed.command("verify")
        assert second.exit_code == 0, second.output
        assert "verified from the checkpoint at commit 2" in second.stdout
        assert books(second) == {0: (0, 7, 5, 2, 0, 0), 1: (0, 3, 2, 1, 0, 0)}
        assert isinstance(feed.command("verify", "--full").exception, Py4JJavaError)
    in_full = feed.command("verify", "--full")
    assert books(in_full) == books(second)
    assert "from the checkpoint" not in in_full.stdout
    again = feed.command("verify")
    assert (books(again), "at commit 3" in again.stdout) == (books(second), True)

    spark = feed.services.spark
    feed.send(*orders(number, 6, 2))
    feed.ingest()
    # Maintenance has forgotten the proved snapshot: the number of rows shows.
    forget_own_snapshots(feed)
    third = feed.command("verify")
    assert (third.exit_code, "at commit 3" in third.stdout) == (0, True)
    spark.sql(f"delete from {feed.table} where _kafka_offset = 1")
    forget_own_snapshots(feed)
    lost = feed.command("verify")
    assert (lost.exit_code, "verified from the first commit" in lost.stdout) == (1, True)
    assert "partition 0: missing offsets 1\n" in lost.output
    # A proof that does not hold leaves no mark.
    assert feed.command("verify").exit_code == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "insert into {table} select * from {table} where _kafka_offset = 0",
            "partition 0: 1 duplicate offsets",
        ),
        (
            "delete from {table} where _kafka_offset = 1 and _kafka_partition = 0",
            "partition 0: missing offsets 1",
        ),
        (
            "delete from lake.bronze.quarantine where _kafka_topic = '{topic}'",
            "partition 0: missing offsets 2",
        ),
    ],
)
def test_what_somebody_else_does_behind_the_mark_is_noticed(
    feed: Feed, change: str, said: str
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2), b"junk")
    feed.ingest()
    assert feed.command("verify").exit_code == 0
    feed.services.spark.sql(change.format(table=feed.table, topic=feed.topic))
    feed.send(*orders(number, 3, 1))
    feed.ingest()
    done = feed.command("verify")
    assert (done.exit_code, said in done.output) == (1, True), done.output


def test_a_table_whose_topic_is_gone_fails_whatever_its_snapshots_show(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2))
    feed.ingest()
    forget_own_snapshots(feed)
    # A client that nobody keeps breaks off what it was asked.
    client = admin(feed)
    client.delete_topics([feed.topic])[feed.topic].result(30)
    wait_for(lambda: feed.services.broker.topic(feed.topic) is None)
    done = feed.command("verify")
    assert done.exit_code == 1
    assert f"topic {feed.topic} does not exist" in done.output
    assert "up to commit 1: nothing can be verified" in done.output
    feed.services.spark.sql(f"drop table {feed.table}")
    done = feed.command("verify")
    assert done.exit_code == 1
    assert "which was filled up to commit 1, was dropped" in done.output
    # The fixture deletes it again.
    client.create_topics([NewTopic(feed.topic, 2, 1)])[feed.topic].result(30)
