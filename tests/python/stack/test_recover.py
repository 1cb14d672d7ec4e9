"""Records that expired unread and recreated topics: a person decides, and it is written down.

Fails when a loss or a recreated topic is passed over without a person's decision, or is
forgotten.
"""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from spark_ingest.commits import commit_log
from spark_ingest.commits.committed import CommitKind, own_snapshots
from spark_ingest.commits.resume import position_of
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.jvm import Jvm
from tests.python.stack.conftest import ORDER, Feed, orders, proofs, wait_for
from tests.python.world.avro import framed


def expire(feed: Feed, partition: int, before: int) -> None:
    """Let the broker remove the records of a partition before an offset."""
    place = TopicPartition(feed.topic, partition, before)
    client = admin(feed)
    client.delete_records([place])[place].result(30)


def admin(feed: Feed) -> AdminClient:
    return AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})


def make_again(feed: Feed) -> None:
    """Delete the topic and make another of its name."""
    client = admin(feed)
    client.delete_topics([feed.topic])[feed.topic].result(30)
    wait_for(lambda: feed.services.broker.topic(feed.topic) is None)
    client.create_topics([NewTopic(feed.topic, 2, 1)])[feed.topic].result(30)
    wait_for(lambda: feed.services.broker.topic(feed.topic))


def forget_own_snapshots(feed: Feed) -> None:
    """Maintenance: a snapshot that is nobody's commit, and all others expired."""
    spark = feed.services.spark
    spark.sql(f"insert into {feed.table} select * from {feed.table} limit 0")
    spark.sql(
        f"call lake.system.expire_snapshots(table => '{feed.stream.table}', "
        "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
    )
    assert own_snapshots(Jvm(spark), feed.stream.table) == []


def log(feed: Feed) -> list[tuple[int, str, int]]:
    """Commit id, kind and offsets taken of each of the feed's rows in the commit log."""
    return [
        (
            row["commit_id"],
            row["kind"],
            sum(o["end_offset"] - o["first_offset"] for o in row["offsets"]),
        )
        for row in feed.log().collect()
    ]


def test_a_gap_is_accepted_by_a_person_and_reported_ever_after(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    feed.ingest()
    nothing = feed.command("recover", "--accept-gap")
    assert nothing.exit_code == 0
    assert "no gap, nothing to recover" in nothing.stdout
    feed.send(*orders(number, 2, 4))
    expire(feed, 0, 5)
    with pytest.raises(
        MillraceError,
        match=r"records 2 to 4 expired before they were read"
        r".*recover test\.feed\d+ --accept-gap",
    ):
        feed.ingest()

    tried = feed.command("recover", "--accept-gap", "--dry-run")
    unasked = feed.command("recover", "--accept-gap")
    assert [c for c, *_ in log(feed)] == [1]
    done = feed.command("recover", "--accept-gap", "--yes")

    assert tried.exit_code == 0
    assert f"{feed.topic}-0: 3 offsets, 2 to 4, which" in tried.stdout
    assert isinstance(unasked.exception, ConfigurationError)
    assert "--yes" in str(unasked.exception)
    assert done.exit_code == 0
    assert "commit 2; resumes at 0: 5, 1: 0" in done.stdout
    assert log(feed) == [(1, "stream", 2), (2, "gap", 3)]
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (3, 1)
    proof = proofs(feed)[0]
    assert proof.holds
    assert (proof.bronze, proof.given_up, proof.empty, proof.missing) == (3, 3, 0, ())
    verified = feed.command("verify")
    assert verified.exit_code == 0
    assert "; 3 offsets were accepted as lost" in verified.stdout
    # What the log says of the gap is true without its snapshot, too.
    forget_own_snapshots(feed)
    assert position_of(feed.services.spark, feed.stream).offsets == {0: 6, 1: 0}
    assert proofs(feed)[0].holds


@pytest.mark.nightly
def test_an_accepted_gap_that_a_crash_kept_out_of_the_log_is_no_loss(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    feed.ingest()
    feed.send(*orders(number, 2, 4))
    expire(feed, 0, 5)

    def cut_off(*arguments: object) -> None:
        raise MillraceError("cut off here")

    monkeypatch.setattr("spark_ingest.operate.recover.commit_log.log_commit", cut_off)
    assert feed.command("recover", "--accept-gap", "--yes").exit_code == 1
    assert [c for c, *_ in log(feed)] == [1]
    assert [(proof.given_up, proof.missing) for proof in proofs(feed)] == [
        (3, ()), (0, ())
    ]  # fmt: skip
    feed.ingest()
    assert log(feed) == [(1, "stream", 2), (2, "gap", 3), (3, "stream", 1)]


def test_a_stream_goes_on_with_a_topic_made_again_and_the_old_one_stays_proved(feed: Feed) -> None:
    number = feed.register(ORDER)
    junk = framed(10**6, ORDER, {"id": 1, "note": ""})
    feed.send(*orders(number, 0, 2), junk)
    feed.send(*orders(number, 2, 1), partition=1)
    feed.ingest()
    assert "no new topic" in feed.command("recover", "--new-topic").stdout
    make_again(feed)
    with pytest.raises(
        MillraceError, match=r"was deleted and recreated.*recover test\.feed\d+ --new-topic"
    ):
        feed.ingest()
    with pytest.raises(MillraceError, match="nothing can be verified"):
        proofs(feed)

    done = feed.command("recover", "--new-topic", "--yes")

    assert done.exit_code == 0
    assert f"{feed.topic}-0: all records of the topic with id" in done.stdout
    assert "from offset 3 on" in done.stdout
    feed.send(*orders(number, 0, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (3, 1)
    reported = [(p.is_earlier, p.partition, p.bronze, p.quarantined, p.holds) for p in proofs(feed)]
    assert reported == [
        (False, 0, 1, 0, True),
        (False, 1, 0, 0, True),
        (True, 0, 2, 1, True),
        (True, 1, 1, 0, True),
    ]
    spark = feed.services.spark
    forget_own_snapshots(feed)
    here = position_of(spark, feed.stream)
    assert (here.commit_id, here.offsets) == (3, {0: 1, 1: 0})
    # A loss of the old topic's still shows, though no broker can be asked.
    spark.sql(f"delete from {feed.table} where _kafka_partition = 0 and _kafka_offset = 1")
    assert [p.missing for p in proofs(feed)] == [(), (), ((1, 2),), ()]


@pytest.mark.nightly
def test_offsets_that_held_no_record_are_explained_when_the_broker_has_removed_them(
    feed: Feed,
) -> None:
    number = feed.register(ORDER)
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for value in orders(number, 0, 3):
            producer.produce(feed.topic, value, b"k", 0)
        producer.flush(30)
        end(30)
    feed.ingest()
    # Offsets 0 to 2; 3 and 7 are markers, 4 to 6 were aborted.
    assert (proofs(feed)[0].empty, proofs(feed)[0].missing) == (5, ())
    feed.send(*orders(number, 3, 2))
    feed.ingest()
    expire(feed, 0, 9)
    proof = proofs(feed)[0]
    assert (proof.bronze, proof.empty, proof.missing) == (5, 5, ())
    spark = feed.services.spark
    spark.sql(f"delete from {feed.table} where _kafka_offset = 1")
    # The commit cannot distinguish its lost offset from those that were empty: all are named.
    assert proofs(feed)[0].missing == ((1, 2), (3, 8))


@pytest.mark.nightly
def test_the_log_gets_each_commit_once_whoever_writes_it_down(feed: Feed) -> None:
    number = feed.register(ORDER)
    for first in range(3):
        feed.send(*orders(number, first, 1))
        feed.ingest()
    spark = feed.services.spark
    mine = f"table_name = '{feed.stream.table}'"
    # The middle one was kept out: a later commit, beside the stream, was faster.
    spark.sql(f"delete from lake.{commit_log.TABLE} where {mine} and commit_id = 2")
    assert all(proof.holds for proof in proofs(feed))
    commit_log.catch_up(spark, feed.stream, lambda: None)
    commit_log.catch_up(spark, feed.stream, lambda: None)
    assert log(feed) == [(n, CommitKind.STREAM, 1) for n in (1, 2, 3)]
