"""What surrounds a stream goes away, comes back, or is not what it was.

Fails when a record is lost or doubled when storage, broker, registry or clock fails.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from sandbox.processes import process
from sandbox.services import stack as sandbox_services
from spark_ingest.commits import commit_log
from spark_ingest.errors import MillraceError
from spark_ingest.operate import recover
from tests.python import catalogs
from tests.python.fault.harness import Sender, Sent, account, confirmed_in, go_on, record, send
from tests.python.gate import Answer, Request, gate
from tests.python.stack.conftest import ORDER, Feed, away, orders, proofs, running, wait_for, wide
from tests.python.stack.test_recover import forget_own_snapshots
from tests.python.world.avro import framed


def admin(feed: Feed) -> AdminClient:
    return AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})


# What even a slow machine takes for a batch of some records; one that hangs takes minutes.
SECONDS = 10


def taken(feed: Feed) -> int:
    """Records that the running stream has committed."""
    return sum(batch.rows + batch.quarantined for batch in feed.reports.batches)


def service(feed: Feed, name: str) -> psutil.Process:
    """A service of the sandbox, as a process."""
    found = process.read_record(feed.stack.home.path / "services" / name)
    assert found is not None
    return psutil.Process(found.pid)


@pytest.mark.long
def test_answers_of_the_catalog_that_come_late_or_twice(feed: Feed, tmp_path: Path) -> None:
    """Every third publish is answered by nobody, and done up to some seconds later."""
    spark, chance, late = feed.services.spark, random.Random(3), list[threading.Timer]()
    with catalogs.rest_catalog(tmp_path) as address, gate(catalogs.port_of(address)) as before:
        settings = {"type": "rest", "uri": before.address}
        session = catalogs.use(spark, **settings, warehouse=f"{tmp_path}/warehouse")
        there = replace(feed, services=replace(feed.services, spark=session))

        def is_publish(request: Request) -> bool:
            return catalogs.is_rest_commit(request) and (
                f"/tables/{there.stream.table.partition('.')[2]}" in request.path
                and b'"ref-name":"main"' in request.body
            )

        def treat(request: Request) -> Answer | None:
            kind = chance.randrange(3)
            if kind == 0:
                after = chance.choice([0.01, 0.2, 1, 3])
                late.append(threading.Timer(after, before.pass_on, [request]))
                late[-1].start()
                return None
            if kind == 1:
                answer = before.pass_on(request)
                before.pass_on(request)
                return answer
            return before.pass_on(request)

        sender = Sender(there)
        with before.treating(is_publish, treat), running(there) as failures:
            wait_for(lambda: len(late) >= 10, 300)
            sender.stop()
        assert failures == []
        for timer in late:
            timer.join()
        went_on = go_on(there)
        found = account(there, sender.sent)
    done = f"REST: {len(late)} commits done up to 3 s after their connection broke, others twice"
    record("Answers that come late, or twice", done, found, f"by itself; {went_on}")


@pytest.mark.long
def test_a_record_that_is_slow_to_validate_keeps_no_other_waiting(feed: Feed) -> None:
    fields = [*ORDER["fields"], {"name": "map", "type": {"type": "map", "values": "int"}}]
    schema = {**ORDER, "fields": fields}
    number = feed.register(schema)
    # Java's buffers all have one hash of these.
    parts = itertools.islice(itertools.product(("aA", "BB"), repeat=14), 2**14)
    values = [{"id": 1, "note": "", "map": dict.fromkeys(map("".join, parts), 0)}]
    values += [{"id": i, "note": "", "map": {}} for i in range(2, 100)]
    sent = send(feed, *(framed(number, schema, value) for value in values))
    (batch,) = feed.ingest()
    assert batch.seconds < SECONDS
    done = f"a map of {2**14:,} keys of one hash, among others"
    went_on = f"committed in {batch.seconds:.1f} s"
    record("A record made to be slow", done, account(feed, sent), went_on)


@pytest.mark.nightly
def test_a_batch_that_is_wholly_bad_moves_on(feed: Feed) -> None:
    number = feed.register(ORDER)
    sent = send(feed, *(b"junk %d" % n for n in range(5)))
    (first,) = feed.ingest()
    sent |= send(feed, b"junk again", partition=1)
    (second,) = feed.ingest()
    assert [(b.commit_id, b.rows, b.quarantined) for b in (first, second)] == [
        (1, 0, 5), (2, 0, 1)
    ]  # fmt: skip
    record("A batch wholly bad", "junk alone, twice", account(feed, sent), "both committed")
    send(feed, *orders(number, 0, 1))
    (third,) = feed.ingest()
    assert (third.commit_id, third.rows) == (3, 1)
    assert all(proof.holds for proof in proofs(feed))


@pytest.mark.long
def test_a_wide_batch_that_is_wholly_bad_moves_on(feed: Feed) -> None:
    feed.register(ORDER)
    wide(feed, 32)
    sent: Sent = {}
    for partition in range(32):
        junk = (b"junk %d " % n + b"x" * 7_900 for n in range(200))
        sent |= send(feed, *junk, partition=partition)
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (0, 6400)
    record(
        "A batch wholly bad on 32 partitions", "junk of 8 kB alone, more than comes back "
        "with the counters", account(feed, sent), "committed; Kafka was read twice",
    )  # fmt: skip


@pytest.mark.long
def test_a_stream_whose_storage_is_away_comes_back_by_itself(new_feed: Callable[[], Feed]) -> None:
    broken, good = new_feed(), new_feed()
    sent, others = (send(feed, *orders(feed.register(ORDER), 0, 3)) for feed in (broken, good))
    with running(good, broken) as failures:
        wait_for(lambda: taken(good) == 6)
        with away(broken):
            sent |= send(broken, *orders(broken.register(ORDER), 3, 3))
            wait_for(lambda: good.reports.notes)
            others |= send(good, *orders(good.register(ORDER), 3, 3))
            wait_for(lambda: taken(good) == 9)
        wait_for(lambda: taken(good) == 12)
    assert failures == []
    record(
        "One stream's storage away, beside another stream",
        "the folder of its table moved away and back", account(broken, sent),
        "by itself; the other one went on meanwhile",
    )  # fmt: skip
    assert account(good, others).is_good


@pytest.mark.long
def test_a_commit_log_that_is_away_is_caught_up_without_a_restart(feed: Feed) -> None:
    sent = send(feed, *orders(feed.register(ORDER), 0, 3))
    spark, log = feed.services.spark, commit_log.TABLE
    with running(feed) as failures:
        wait_for(lambda: taken(feed) == 3)
        spark.sql(f"alter table lake.{log} rename to bronze.elsewhere")
        try:
            sent |= send(feed, *orders(feed.register(ORDER), 3, 3), b"junk")
            wait_for(lambda: taken(feed) == 7)
            wait_for(lambda: any("log is behind" in n for n in feed.reports.notes))
        finally:
            spark.sql(f"alter table lake.bronze.elsewhere rename to {log}")
        mine = f"table_name = '{feed.stream.table}' and commit_id > 0"
        wait_for(lambda: spark.table(f"lake.{log}").where(mine).count() > 1)
    assert failures == []
    record(
        "The commit log away", "its table renamed and named back",
        account(feed, sent), "the stream went on; its rows were added by itself",
    )  # fmt: skip


@pytest.mark.nightly
def test_a_clock_moved_back_changes_no_order(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    number = feed.register(ORDER)
    sent = send(feed, *orders(number, 0, 3), b"junk")
    feed.ingest()

    class Back:
        """A clock that is an hour behind."""

        @staticmethod
        def now(_zone: object) -> datetime:
            return datetime.now(UTC) - timedelta(hours=1)

    monkeypatch.setattr("spark_ingest.streaming.batch.datetime", Back)
    sent |= send(feed, *orders(number, 3, 3), b"more junk")
    feed.ingest()
    rows = feed.services.spark.table(feed.table)
    times = [
        row[0]
        for row in rows.groupBy("_commit_id")
        .agg({"_ingested_at": "max"})
        .orderBy("_commit_id")
        .select("max(_ingested_at)")
        .collect()
    ]
    assert times[1] < times[0]
    record(
        "The clock moved back", "an hour, between two batches", account(feed, sent),
        "commit ids go on; `_ingested_at` steps back",
    )  # fmt: skip


def test_partitions_that_are_added_are_read_while_the_stream_runs(feed: Feed) -> None:
    number = feed.register(ORDER)
    sent = send(feed, *orders(number, 0, 3))
    with running(feed) as failures:
        wait_for(lambda: taken(feed) == 3)
        client = admin(feed)
        client.create_partitions([NewPartitions(feed.topic, 4)])[feed.topic].result(30)
        wait_for(lambda: len(feed.services.broker.existing_topic(feed.topic, "").partitions) == 4)
        sent |= send(feed, *orders(number, 3, 4), b"junk", partition=3)
        wait_for(lambda: taken(feed) == 8 or failures, 120)
    assert failures == []
    record("Partitions added", "2 more while it runs", account(feed, sent), "it read them")


@pytest.mark.nightly
def test_aborted_records_are_none_also_when_all_own_snapshots_are_expired(feed: Feed) -> None:
    number = feed.register(ORDER)
    sent: Sent = {}
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(60)
    ends: list[tuple[Callable[[float], None], bool]] = [
        (producer.commit_transaction, True),
        (producer.abort_transaction, False),
        (producer.commit_transaction, True),
    ]
    for end, counts in ends:
        producer.begin_transaction()
        for value in orders(number, 0, 3):
            reported = confirmed_in(sent, value) if counts else confirmed_in({}, value)
            producer.produce(feed.topic, value, b"k", 0, on_delivery=reported)
        producer.flush(60)
        end(60)
    feed.ingest()
    record(
        "A transactional producer", "commits 3 records, aborts 3, commits 3",
        account(feed, sent), "markers and aborted records count as empty",
    )  # fmt: skip
    # A commit that the rows of the table know nothing of.
    sent |= send(feed, b"junk")
    feed.ingest()
    forget_own_snapshots(feed)
    sent |= send(feed, *orders(number, 9, 2))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (3, 2)
    # 3, 7 and 11 are markers, 4 to 6 were aborted, 12 is junk.
    assert [at for _, at in feed.offsets()] == [0, 1, 2, 8, 9, 10, 13, 14]
    assert feed.quarantined() == [(12, "not_framed")]
    record(
        "All own snapshots expired", "`expire_snapshots` of everything",
        account(feed, sent), "at the offsets of rows and log",
    )  # fmt: skip


def test_records_that_expired_unread_are_given_up_by_a_person_alone(feed: Feed) -> None:
    number = feed.register(ORDER)
    sent = send(feed, *orders(number, 0, 3))
    feed.ingest()
    send(feed, *orders(number, 3, 3))
    place, client = TopicPartition(feed.topic, 0, 6), admin(feed)
    client.delete_records([place])[place].result(30)
    sent |= send(feed, *orders(number, 6, 2))
    with pytest.raises(MillraceError, match="--accept-gap"):
        feed.ingest()
    found = recover.find_gap(feed.services, feed.stream)
    assert found is not None
    assert recover.accept(feed.services, found) is not None
    feed.ingest()
    record(
        "Records expired unread", "3 deleted by the broker; `recover --accept-gap`",
        account(feed, sent), "it stopped, naming them; went on when they were given up",
    )  # fmt: skip


@pytest.mark.long
def test_a_compacted_topic_has_holes_and_no_losses(feed: Feed) -> None:
    settings = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "min.compaction.lag.ms": "0",
    }
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, feed.topic, incremental_configs=entries)
    client = admin(feed)
    client.incremental_alter_configs([resource])[resource].result(30)
    number = feed.register(ORDER)
    sent: Sent = {}
    for first in range(0, 30, 5):
        sent |= send(feed, *orders(number, first, 5))
        threading.Event().wait(0.3)
    # The newest segment is never compacted; this closes the one before.
    sent |= send(feed, *orders(number, 30, 1), key=b"other")
    wait_for(lambda: len(_on_broker(feed)) < len(sent), 120)
    feed.ingest()
    kept = _on_broker(feed)
    assert 0 < len(kept) < len(sent)
    record(
        "A compacted topic", "read after the broker compacted it",
        account(feed, {place: sent[place] for place in kept}), "its holes count as empty",
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ["kafka", "registry"])
def test_a_service_asleep_for_a_minute_is_waited_for(feed: Feed, name: str) -> None:
    sender = Sender(feed, rate=50)
    with running(feed) as failures:
        wait_for(lambda: taken(feed) > 0)
        asleep = service(feed, name)
        asleep.suspend()
        threading.Event().wait(60)
        asleep.resume()
        before = taken(feed)
        wait_for(lambda: taken(feed) > before or failures, 180)
        assert failures == []
    sender.stop()
    go_on(feed)
    what = {"kafka": "The broker", "registry": "The registry"}[name]
    record(
        f"{what} asleep", "SIGSTOP for a minute under load", account(feed, sender.sent), "by itself"
    )


@pytest.mark.long
def test_a_broker_that_is_killed_and_started_again(feed: Feed) -> None:
    sender = Sender(feed, rate=50)
    with running(feed) as failures:
        wait_for(lambda: taken(feed) > 0)
        service(feed, "kafka").kill()
        sandbox_services.up(feed.stack.home, ["kafka"])
        before = taken(feed)
        wait_for(lambda: taken(feed) > before or failures, 180)
        assert failures == []
    sender.stop()
    go_on(feed)
    record("The broker killed", "SIGKILL, then started", account(feed, sender.sent), "by itself")


def _on_broker(feed: Feed) -> set[tuple[int, int]]:
    """The positions of partition 0 that hold a record on the broker."""
    consumer = Consumer(
        {
            "bootstrap.servers": feed.stack.home.bootstrap_servers,
            "group.id": feed.topic,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(feed.topic, 0, 0)])
    found: set[tuple[int, int]] = set()
    try:
        while True:
            message = consumer.poll(10)
            assert message is not None
            if message.error() is not None:
                return found
            offset = message.offset()
            assert offset is not None
            found.add((0, offset))
    finally:
        consumer.close()
