"""Marts published to a real broker, and read by Confluent's own deserializers.

Fails when a reader has other rows than the mart, twice or too late, wherever a publisher died.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from spark_ingest.errors import PersonNeeded, ServiceUnavailable
from spark_ingest.publish import publisher as publishing
from spark_ingest.publish.publications import read_publications
from spark_ingest.publish.publisher import Publisher
from spark_ingest.publish.transactions import PROGRESS_TOPIC, Progress, TopicWriter
from tests.python.stack.conftest import Feed, wait_for
from tests.python.stack.published import Sales

_NUMBERS = itertools.count(1)


class Killed(BaseException):
    """Ends a publisher wherever it is."""


@pytest.fixture
def sales(feed: Feed, tmp_path: Path) -> Iterator[Sales]:
    """A mart without rows, of which nothing was published."""
    made = Sales(feed, f"sales{next(_NUMBERS)}", tmp_path / "manifest.json")
    made.declare()
    feed.services.spark.sql("create namespace if not exists lake.marts")
    made.make()
    yield made
    made.sql("drop table if exists {mart} purge")
    admin = AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})
    for future in admin.delete_topics([made.topic]).values():
        # Not every test publishes.
        future.exception(30)


def test_a_reader_has_what_the_mart_has_after_each_publication(sales: Sales) -> None:
    sales.insert(
        ("Europe", "2026-01-01 10:00:00", 1.10),
        ("Africa", "2026-01-01 23:59:59.999999", None),
        ("Europe", "2026-01-02 00:00:00", 3),
    )
    assert "3 rows, 0 deletes" in sales.publish()
    sales.assert_read()
    assert "no changes" in sales.publish()

    # A late row, one that changes, one that moves to another day, one that vanishes.
    sales.insert(("Asia", "2025-12-31 10:00:00", 7), ("Asia", "2026-01-02 10:00:00", 7))
    sales.sql("update {mart} set amount = 2.20 where region = 'Europe' and amount = 1.10")
    sales.sql("update {mart} set at = at + interval 1 day where region = 'Africa'")
    sales.sql("delete from {mart} where amount = 3")
    assert "4 rows, 2 deletes" in sales.publish()
    sales.assert_read()
    assert len(sales.log()) == 3 + 6

    # A full refresh with the same rows, one of them changed.
    sales.sql(
        "create or replace table {mart} partitioned by (days(at)) as "
        "select region, at, coalesce(amount, 5) as amount from {mart}"
    )
    assert "1 rows, 0 deletes" in sales.publish()
    sales.assert_read()
    assert planned_rows(sales) == "0"
    assert sales.command("verify").exit_code == 0
    assert [policy(sales, name) for name in (sales.topic, PROGRESS_TOPIC)] == ["compact", "compact"]


def policy(sales: Sales, topic: str) -> Any:
    """What the broker does with a topic's old records."""
    admin = AdminClient({"bootstrap.servers": sales.feed.stack.home.bootstrap_servers})
    asked = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([asked])[asked].result(30)["cleanup.policy"].value


def test_changes_say_what_became_of_a_row(sales: Sales) -> None:
    sales.envelope = "changes"
    sales.declare()
    sales.insert(("Europe", "2026-01-01 10:00:00", 1), ("Asia", "2026-01-01 10:00:00", 2))
    sales.publish()
    sales.insert(("Africa", "2026-01-01 10:00:00", 3))
    sales.sql("update {mart} set amount = 4 where region = 'Asia'")
    sales.sql("delete from {mart} where region = 'Europe'")
    sales.publish()

    values = [value or {} for _, value in sales.log()]
    reported = [(value["region"], value["_op"], value["amount"]) for value in values]
    assert planned_rows(sales) == "0"
    assert sorted(reported) == [
        ("Africa", "c", Decimal("3.00")),
        ("Asia", "r", Decimal("2.00")),
        ("Asia", "u", Decimal("4.00")),
        ("Europe", "d", Decimal("1.00")),
        ("Europe", "r", Decimal("1.00")),
    ]
    sales.assert_read()
    # What the topic holds is found out from its records where the snapshot is gone.
    forget(sales)
    sales.sql("delete from {mart} where region = 'Asia'")
    assert "0 rows, 1 deletes" in sales.publish()
    sales.assert_read()


def planned_rows(sales: Sales) -> str:
    """How many rows would be sent, as a person is shown it."""
    lines = sales.command("plan").output.splitlines()
    (line,) = [line for line in lines if sales.topic in line]
    return line.split("│")[-3].strip()


def forget(sales: Sales) -> None:
    """Let the published snapshot expire."""
    sales.sql("insert into {mart} values ('Arab States', timestamp '2020-01-01', 1)")
    sales.sql("delete from {mart} where region = 'Arab States'")
    sales.sql(f"alter table {{mart}} drop tag published_{sales.name}")
    sales.sql(
        f"call lake.system.expire_snapshots(table => 'marts.{sales.name}', "
        "older_than => timestamp '2100-01-01', retain_last => 1)"
    )


@pytest.fixture
def dead() -> Iterator[list[TopicWriter]]:
    """Writers that died. Their producers stay, and may still send: librdkafka may abort this
    process, too, where one goes in the middle of a transaction.
    """
    writers: list[TopicWriter] = []
    yield writers
    for writer in writers:
        writer.purge()


@contextmanager
def killed_at(step: str, number: int, dead: list[TopicWriter]) -> Iterator[None]:
    """The publisher dies before some call, without a word to the broker."""
    calls = itertools.count(1)
    whole = getattr(TopicWriter, step)

    def dies(writer: TopicWriter, *given: Any) -> Any:
        if next(calls) == number:
            raise Killed
        return whole(writer, *given)

    def stays(writer: TopicWriter) -> None:
        dead.append(writer)

    with patch.object(TopicWriter, step, dies), patch.object(TopicWriter, "abort", stays):
        yield


def test_a_publisher_that_dies_anywhere_is_followed_without_loss_or_repetition(
    sales: Sales, dead: list[TopicWriter]
) -> None:
    rows = [("Europe", f"2026-01-0{day} 10:00:00", day) for day in range(1, 8)]
    sales.insert(*rows)
    deaths = [
        ("send", 1), ("send", 4), ("commit", 1), ("commit", 2), ("send", 2),
        ("send", 1), ("send", 3), ("commit", 1), ("commit", 2), ("send", 1),
    ]  # fmt: skip

    with patch.object(publishing, "LARGEST_TRANSACTION", 2):
        for at, (step, number) in enumerate(deaths):
            if at == 5:
                sales.publish()
                sales.assert_read()
                assert len(sales.log()) == 7
                sales.sql("update {mart} set amount = amount + 10 where day(at) < 6")
            with pytest.raises(Killed), killed_at(step, number, dead), sales.publisher() as opened:
                opened.publish()
        # Died between Kafka's commit and the tag.
        with (
            pytest.raises(Killed),
            patch.object(Publisher, "_tag", side_effect=Killed),
            sales.publisher() as opened,
        ):
            opened.publish()
        assert "no changes" in sales.publish()
    sales.assert_read()
    assert len(sales.log()) == 7 + 5


def test_a_commit_of_which_nobody_knows_is_not_sent_again(sales: Sales) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1))
    whole = TopicWriter.commit

    def lost(writer: TopicWriter, done: Progress) -> None:
        whole(writer, done)
        raise ServiceUnavailable("no answer in time")

    with sales.publisher() as opened:
        with patch.object(TopicWriter, "commit", lost), pytest.raises(ServiceUnavailable):
            opened.publish()
        assert opened.publish() is None
        sales.insert(("Asia", "2026-01-01 10:00:00", 2))
        opened.publish()
    sales.assert_read()
    assert len(sales.log()) == 2


def test_a_second_publisher_takes_the_topic_over_and_the_first_one_ends(sales: Sales) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1))
    with sales.publisher() as first:
        first.publish()
        sales.insert(("Asia", "2026-01-01 10:00:00", 2))
        with sales.publisher() as second:
            second.publish()
            sales.insert(("Africa", "2026-01-01 10:00:00", 3))
            with pytest.raises(PersonNeeded, match="took over this topic"):
                first.publish()
            second.publish()
    sales.assert_read()
    assert len(sales.log()) == 3


def test_a_fenced_publisher_says_so_where_librdkafka_noticed_it_between_two_records(
    sales: Sales,
) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1))
    sales.publish()
    connections = sales.feed.services.connections
    first, second = TopicWriter(connections, sales.topic), TopicWriter(connections, sales.topic)
    first.fence_others()
    first.send(b"key", b"row")
    second.fence_others()

    def is_fenced() -> bool:
        try:
            # Nobody polls here: the producer's next answer is "fatal error" and no reason.
            first._producer.produce(sales.topic, b"row", b"key")
        except KafkaException as error:
            return bool(error.args[0].name() == "_FATAL")
        return False

    wait_for(is_fenced)
    with pytest.raises(PersonNeeded, match="took over this topic"):
        first.send(b"key", b"row")
    first.abort()


@pytest.mark.nightly
def test_a_topic_or_a_mart_that_was_made_again_is_brought_up_to_date(sales: Sales) -> None:
    kept = ("Europe", "2026-01-01 10:00:00", 1)
    sales.insert(kept, ("Asia", "2026-01-01 10:00:00", 2))
    sales.publish()

    sales.sql("drop table {mart} purge")
    sales.make()
    sales.insert(kept, ("Africa", "2026-01-01 10:00:00", 3))
    assert "1 rows, 1 deletes" in sales.publish()
    sales.assert_read()

    admin = AdminClient({"bootstrap.servers": sales.feed.stack.home.bootstrap_servers})
    admin.delete_topics([sales.topic])[sales.topic].result(30)
    wait_for(lambda: sales.feed.services.broker.topic(sales.topic) is None)
    assert "2 rows, 0 deletes" in sales.publish()
    sales.assert_read()

    forget(sales)
    sales.insert(("Latin America", "2026-01-05 10:00:00", 3))
    assert "1 rows, 0 deletes" in sales.publish()
    sales.assert_read()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("insert into {mart} select * from {mart}", "its key is in 2 rows"),
        ("insert into {mart} values (null, timestamp '2026-01-03', 1)", "region is null"),
    ],
)
def test_a_row_that_cannot_be_published_stops_the_publication_and_nothing_is_sent(
    sales: Sales, spoil: str, said: str
) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1))
    sales.publish()
    sales.insert(("Asia", "2026-01-02 10:00:00", 2))
    sales.sql(spoil)

    done = sales.command("--once")

    assert done.exit_code != 0
    assert said in done.output
    assert f"config.meta.publish.key in {read_publications(sales.manifest)[0].file}" in (
        done.output
    )
    assert len(sales.log()) == 1


def test_a_topic_with_records_of_others_is_left_alone(sales: Sales) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1))
    admin = AdminClient({"bootstrap.servers": sales.feed.stack.home.bootstrap_servers})
    admin.create_topics([NewTopic(sales.topic, 2, 1)])[sales.topic].result(30)
    producer = sales.feed.producer()
    producer.produce(sales.topic, b"theirs", b"theirs", 0)
    assert producer.flush(30) == 0

    assert "records of other producers" in sales.command("--once").output
    assert "1 rows, 1 deletes" in sales.publish("--adopt")


@pytest.mark.nightly
def test_columns_that_come_are_published_and_types_that_change_are_refused(sales: Sales) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1), ("Asia", "2026-01-02 10:00:00", 2))
    sales.publish()

    sales.sql("alter table {mart} add column note string")
    sales.columns["note"] = ("string", False)
    sales.declare()
    sales.sql("update {mart} set note = 'late' where region = 'Asia'")
    # By the new schema each row is another record.
    assert "2 rows, 0 deletes" in sales.publish()
    sales.assert_read()

    sales.sql("alter table {mart} drop column amount")
    sales.sql("alter table {mart} add column amount boolean after at")
    sales.sql("update {mart} set amount = true")
    done = sales.command("--once")
    assert done.exit_code != 0
    assert f"subject {sales.topic}-value rejects the new schema" in done.output
    assert len(sales.log()) == 4


@pytest.mark.nightly
def test_verify_names_what_a_topic_lacks_and_what_nobody_published(sales: Sales) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00", 1), ("Asia", "2026-01-02 10:00:00", 2))
    assert "never published" in sales.command("verify").output
    sales.publish()
    assert sales.command("verify").exit_code == 0
    producer = sales.feed.producer()
    keys = [key for key, _ in raw(sales)]
    producer.produce(sales.topic, None, keys[0], 0)
    producer.produce(sales.topic, None, keys[0], 1)
    producer.produce(sales.topic, b"theirs", b"theirs", 0)
    assert producer.flush(30) == 0

    done = sales.command("verify")

    assert done.exit_code == 1
    (line,) = [line for line in done.output.splitlines() if sales.topic in line]
    assert [part.strip() for part in line.split("│")[3:-1]] == ["2", "1", "0", "1"]


def raw(sales: Sales) -> list[tuple[bytes, bytes | None]]:
    """Keys and values of the topic as they are."""
    broker = sales.feed.services.broker
    topic = broker.existing_topic(sales.topic, "")
    ends = broker.end_offsets(topic)
    return [
        (message.key() or b"", message.value())
        for number in topic.partitions
        for message in broker.messages(topic.name, number, 0, ends[number])
    ]


@pytest.mark.nightly
def test_what_is_published_is_ingested_again(
    sales: Sales, new_feed: Callable[[], Feed], tmp_path: Path
) -> None:
    sales.insert(("Europe", "2026-01-01 10:00:00.123456", 1), ("Asia", "2026-01-02", None))
    sales.publish()
    again = new_feed()
    made = json.loads(again.manifest.read_text())
    (node,) = made["sources"].values()
    node["config"]["meta"]["ingest"] |= {"topic": sales.topic, "key": "confluent"}
    manifest = tmp_path / "again.json"
    manifest.write_text(json.dumps(made))

    done = again.command("run", "--once", manifest=manifest)

    assert done.exit_code == 0, done.output
    spark = again.services.spark
    read = spark.sql(f"select region, at, amount, _key.region from {again.table}")
    mart = spark.sql(f"select region, at, amount, region from {sales.table}")
    assert sorted(map(str, read.collect())) == sorted(map(str, mart.collect()))
