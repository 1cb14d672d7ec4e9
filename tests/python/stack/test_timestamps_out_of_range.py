"""Records whose CreateTime is of another unit than milliseconds cost nobody but themselves.

Fails when such a record stops its topic, is lost or doubled, or gets a time that it did not have.
"""

from __future__ import annotations

import io
import json
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from sandbox.tour.query import Format, write_rows
from spark_ingest.operate.backfill import BackfillSettings, backfill
from spark_ingest.streaming import run, tables
from tests.python.stack.conftest import ORDER, Feed, orders, proofs, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

MILLIS = 1_700_000_000_000
MICROS = MILLIS * 1000
NANOS = MICROS * 1000
CLASS = "timestamp_out_of_range"
# When MICROS is in milliseconds.
YEAR_55840 = "+55840-11-08 22:13:20"


@pytest.fixture
def odd_feed(feed: Feed) -> Feed:
    """A feed whose topic takes any timestamp."""
    take_any_timestamp(feed)
    return feed


def take_any_timestamp(feed: Feed) -> None:
    """Let a feed's topic take any timestamp."""
    admin = AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})
    setting = ConfigEntry(
        "message.timestamp.after.max.ms",
        str(2**63 - 1),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, feed.topic, incremental_configs=[setting])
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(30)


def send(feed: Feed, *records: tuple[bytes | None, int], partition: int = 0, **more: str) -> None:
    """Send values with their timestamps, a key and a header each."""
    producer = feed.producer(**more)
    for value, at in records:
        headers: list[tuple[str, str | bytes | None]] = [("h", b"\xff"), ("none", None)]
        producer.produce(feed.topic, value, b"k\x00", partition, timestamp=at, headers=headers)
    assert producer.flush(30) == 0


def timed(values: Sequence[bytes], at: int = MILLIS) -> list[tuple[bytes | None, int]]:
    return [(value, at) for value in values]


def in_quarantine(feed: Feed) -> list[Row]:
    rows = feed.services.spark.table("lake.bronze.quarantine")
    mine = rows.where(rows["_kafka_topic"] == feed.topic)
    return (
        mine.withColumn("at", mine["_kafka_timestamp"].cast("string"))
        .drop("_kafka_timestamp")
        .orderBy("_kafka_partition", "_kafka_offset")
        .collect()
    )


def landed(feed: Feed, partition: int, offset: int) -> bool:
    return (partition, offset) in feed.offsets()


def test_a_record_with_nanoseconds_costs_itself_alone(odd_feed: Feed) -> None:
    feed = odd_feed
    number = feed.register(ORDER)
    good = orders(number, 0, 6)
    send(
        feed,
        (good[0], MILLIS),
        (good[1], NANOS),
        (good[2], MICROS),
        (b"junk", MICROS),
        (None, NANOS),
        (good[3], MILLIS),
    )
    send(feed, *timed(good[4:]), partition=1)
    batches = feed.ingest()
    assert sum(batch.rows for batch in batches) == 5
    assert sum(batch.quarantined for batch in batches) == 3
    assert feed.offsets() == [(0, 0), (0, 2), (0, 5), (1, 0), (1, 1)]
    nanos, junk, tombstone = in_quarantine(feed)
    assert (nanos["_kafka_offset"], nanos["stage"], nanos["error_class"]) == (
        1, "timestamp", CLASS,
    )  # fmt: skip
    assert f"timestamp {NANOS} is out of the range" in nanos["error_message"]
    assert nanos["at"] is None
    assert bytes(nanos["_kafka_key"]) == b"k\x00"
    assert bytes(nanos["_kafka_value"]) == good[1]
    assert [tuple(each) for each in nanos["_kafka_headers"]] == [
        ("h", b"\xff"), ("none", None),
    ]  # fmt: skip
    assert (junk["error_class"], junk["at"]) == ("not_framed", YEAR_55840)
    assert (tombstone["error_class"], tombstone["_kafka_value"]) == (CLASS, None)
    assert_all_is_accounted_for(feed)
    microseconds_are_kept(feed)
    the_commands_take_them(feed)
    # The stream goes on behind them.
    send(feed, *timed(orders(number, 9, 1)))
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (1, 0)
    assert_all_is_accounted_for(feed)


def assert_all_is_accounted_for(feed: Feed) -> None:
    found = proofs(feed)
    assert all(proof.holds for proof in found), found
    assert feed.command("verify", feed.stream.name).exit_code == 0
    # Each commit goes on where the one before it ended.
    ends = {0: 0, 1: 0}
    for row in feed.log().select("offsets").collect():
        for partition, first, end in row[0]:
            assert ends[partition] == first
            ends[partition] = end


def microseconds_are_kept(feed: Feed) -> None:
    """The record of the year 55840 is in bronze, and can be asked for."""
    spark = feed.services.spark
    frame = spark.sql(f"select _kafka_timestamp from {feed.table} where _kafka_offset = 2")
    for form in Format:
        out = io.StringIO()
        write_rows(frame, form, out)
        assert "+55840-11-08" in out.getvalue()


def the_commands_take_them(feed: Feed) -> None:
    """The commands for quarantine take a record without a time, and one of the year 55840."""
    name = feed.stream.name
    listed = feed.command("quarantine", "list", name, "--format", "json")
    found = {each["error_class"]: each for each in json.loads(listed.stdout)}
    assert (found[CLASS]["open"], found[CLASS]["first"]) == (2, "0:1")
    shown = feed.command("quarantine", "show", feed.topic, "0", "1").stdout
    assert "written    none\n" in shown
    assert str(NANOS) in shown
    shown = feed.command("quarantine", "show", feed.topic, "0", "3").stdout
    assert "written    +55840-11-08 22:13:20.000 UTC" in shown
    before = in_quarantine(feed)
    replayed = feed.command("quarantine", "replay", name)
    assert sorted(replayed.stdout.splitlines()) == [
        "  1 stay in quarantine: not_framed",
        f"  2 stay in quarantine: {CLASS}",
        f"{name}: 0 replayed",
    ]
    # With the reason that names the number.
    assert in_quarantine(feed) == before
    words = ("--class", CLASS, "--reason", "sent again", "--yes")
    assert "discarded 2" in feed.command("quarantine", "discard", name, *words).stdout


def test_a_backfill_takes_records_with_nanoseconds(odd_feed: Feed) -> None:
    feed = odd_feed
    number = feed.register(ORDER)
    good = orders(number, 0, 20)
    send(feed, *timed(good[:5]), (b"junk", NANOS), *timed(good[5:10]))
    send(feed, (good[0], NANOS), *timed(good[10:]), (good[0], NANOS), partition=1)
    tables.create_tables(feed.services, [feed.stream])
    settings = run.RunSettings(None, 100, 0.1, begin="latest")
    run.run_streams(feed.services, [feed.stream], settings, threading.Event())
    done = backfill(
        feed.services, feed.stream, {0: 0, 1: 0}, BackfillSettings(100, 0.1), threading.Event()
    )
    assert done == 23
    assert feed.offsets() == [
        *((0, offset) for offset in range(11) if offset != 5),
        *((1, offset) for offset in range(1, 11)),
    ]
    assert feed.quarantined() == [(0, CLASS), (5, CLASS), (11, CLASS)]
    assert all(proof.holds for proof in proofs(feed))


@pytest.mark.nightly
def test_records_in_doubt_are_read_as_spark_reads_them(odd_feed: Feed) -> None:
    """Aborted ones never were, and more wait than are taken unseen."""
    feed = odd_feed
    number = feed.register(ORDER)
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(30)
    for abort in (True, False):
        producer.begin_transaction()
        for each in orders(number, 0, 600):
            producer.produce(feed.topic, each, b"k", 0, timestamp=MILLIS)
        producer.produce(feed.topic, b"odd", b"k", 0, timestamp=NANOS)
        producer.flush(30)
        if abort:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    send(feed, *timed(orders(number, 0, 600)))
    batches = feed.ingest()
    assert sum(batch.rows for batch in batches) == 1200
    # 601 aborted, the marker, 600 good.
    assert feed.quarantined() == [(1202, CLASS)]
    assert all(proof.holds for proof in proofs(feed))


@pytest.mark.nightly
def test_a_running_stream_passes_over_each(odd_feed: Feed) -> None:
    feed = odd_feed
    number = feed.register(ORDER)
    with running(feed) as failures:
        for each in range(3):
            send(feed, *timed(orders(number, each, 1)), (b"odd", NANOS))
            send(feed, (b"odd", NANOS), partition=1)
            wait_for(partial(landed, feed, 0, 2 * each))
        send(feed, *timed(orders(number, 5, 1)), partition=1)
        wait_for(partial(landed, feed, 1, 3))
    assert failures == []
    assert len(feed.quarantined()) == 6
    assert all(proof.holds for proof in proofs(feed))
