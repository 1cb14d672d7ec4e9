"""From a real broker and registry into bronze: every record once, whatever it looks like."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from spark_ingest import ledger, run
from spark_ingest.errors import (
    CommitRefused,
    ConfigurationError,
    LeaseLost,
    MillraceError,
    ServiceUnavailable,
)
from spark_ingest.kafka import Broker, Topic
from spark_ingest.lease import Lease, own_snapshots
from spark_ingest.session import Jvm
from tests.python.stack.conftest import ORDER, Feed, framed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_ingest.lease import Commit
    from spark_ingest.ledger import PartitionProof
    from spark_ingest.registry import WriterSchema

WIDER = {
    **ORDER,
    "fields": [
        *ORDER["fields"],
        {"name": "channel", "type": ["null", "string"], "default": None},
    ],
}


def orders(schema_id: int, first: int, count: int) -> list[bytes]:
    return [
        framed(schema_id, ORDER, {"id": i, "note": f"n{i}"})
        for i in range(first, first + count)
    ]


def proofs(feed: Feed) -> list[PartitionProof]:
    services = feed.services
    topic = services.broker.existing_topic(feed.topic, feed.stream.name)
    return ledger.prove(services.spark, services.broker, feed.stream, topic)


def test_good_bad_and_tombstones_are_all_accounted_for(feed: Feed) -> None:
    number = feed.register(ORDER)
    good = orders(number, 0, 3)
    feed.send(good[0], None, b"junk", good[1])
    feed.send(
        good[2],
        good[2] + b"!",
        framed(10**6, ORDER, {"id": 1, "note": ""}),
        partition=1,
    )
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined, batch.lag) == (4, 3, 0)
    rows = feed.services.spark.table(feed.table).orderBy(
        "_kafka_partition", "_kafka_offset"
    )
    seen = rows.select(
        "id", "note", "_kafka_partition", "_kafka_offset", "_is_tombstone", "_schema_id",
        "_commit_id",
    )  # fmt: skip
    assert [tuple(row) for row in seen.collect()] == [
        (0, "n0", 0, 0, False, number, 1),
        (None, None, 0, 1, True, None, 1),
        (1, "n1", 0, 3, False, number, 1),
        (2, "n2", 1, 0, False, number, 1),
    ]
    assert feed.quarantined() == [
        (1, "undecodable"),
        (2, "not_framed"),
        (2, "unknown_id"),
    ]
    aside = feed.services.spark.table("lake.bronze.quarantine")
    bytes_kept = (
        aside.where(aside["_kafka_topic"] == feed.topic)
        .select("_kafka_value")
        .collect()
    )
    assert b"junk" in [bytes(row[0]) for row in bytes_kept]
    assert all(proof.holds for proof in proofs(feed))
    (logged,) = (
        feed.services.spark.table(f"lake.{ledger.TABLE}")
        .where(f"table_name = '{feed.stream.table}'")
        .collect()
    )
    assert (logged["row_count"], logged["quarantined_count"], logged["commit_id"]) == (
        4,
        3,
        1,
    )
    assert [tuple(o) for o in logged["offsets"]] == [(0, 0, 4), (1, 0, 3)]


def test_a_second_run_goes_on_where_the_table_stands(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 5))
    feed.ingest()
    assert feed.ingest() == []
    feed.send(*orders(number, 5, 5))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (2, 5)
    assert feed.offsets() == [(0, i) for i in range(10)]


def test_many_small_batches_are_commits_one_two_three(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 10))
    batches = feed.ingest(max_records=4)
    assert [batch.commit_id for batch in batches] == list(range(1, len(batches) + 1))
    assert len(batches) >= 3
    assert feed.offsets() == [(0, i) for i in range(10)]
    assert all(proof.holds for proof in proofs(feed))


def test_a_wholly_bad_batch_moves_on(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*[b"junk"] * 20)
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (0, 20)
    feed.send(*orders(number, 0, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (2, 1)
    assert all(proof.holds for proof in proofs(feed))


def test_bad_records_too_large_to_carry_are_read_again(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.register(ORDER)
    monkeypatch.setattr("spark_ingest.commit._CARRIED_BYTES", 100)
    feed.send(b"small", b"x" * 200)
    (batch,) = feed.ingest()
    assert batch.quarantined == 2
    assert feed.quarantined() == [(0, "not_framed"), (1, "not_framed")]


def test_two_versions_of_a_schema_share_a_batch_and_a_table(feed: Feed) -> None:
    old, new = feed.register(ORDER), feed.register(WIDER)
    feed.send(
        framed(new, WIDER, {"id": 2, "note": "b", "channel": "web"}), *orders(old, 1, 1)
    )
    (batch,) = feed.ingest()
    assert batch.rows == 2
    rows = feed.services.spark.table(feed.table).orderBy("id")
    assert [tuple(row) for row in rows.select("id", "channel").collect()] == [
        (1, None),
        (2, "web"),
    ]


def test_a_schema_of_another_subject_is_found_by_its_id(feed: Feed) -> None:
    feed.register(ORDER)
    other = feed.register(WIDER, subject=f"{feed.topic}-elsewhere")
    feed.send(framed(other, WIDER, {"id": 2, "note": "b", "channel": "web"}))
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (1, 0)
    assert (
        feed.services.spark.table(feed.table).select("channel").collect()[0][0] == "web"
    )


def wait_for(what: Callable[[], Any], seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")


def test_a_new_field_adds_a_column_while_the_stream_runs(feed: Feed) -> None:
    old = feed.register(ORDER)
    feed.send(*orders(old, 0, 3))
    run.create_tables(feed.services, [feed.stream])
    stopping, failures = threading.Event(), []

    def work() -> None:
        settings = run.RunSettings("200 milliseconds", 1000, unknown_wait=5)
        try:
            run.run_streams(feed.services, [feed.stream], settings, stopping)
        except MillraceError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_for(lambda: feed.reports.batches or failures)
        new = feed.register(WIDER)
        feed.send(
            framed(new, WIDER, {"id": 9, "note": "x", "channel": "app"}),
            *orders(old, 3, 1),
        )
        wait_for(lambda: len(feed.offsets()) == 5 or failures)
    finally:
        stopping.set()
        thread.join(60)
    assert not failures
    rows = feed.services.spark.table(feed.table).orderBy("_kafka_offset")
    assert [tuple(row) for row in rows.select("id", "channel").collect()] == [
        (0, None), (1, None), (2, None), (9, "app"), (3, None)
    ]  # fmt: skip
    assert all(proof.holds for proof in proofs(feed))


def test_a_second_writer_is_refused_and_told_who_writes(feed: Feed) -> None:
    feed.register(ORDER)
    run.create_tables(feed.services, [feed.stream])
    jvm = Jvm(feed.services.spark)
    lease = Lease.take(jvm, feed.stream.table)
    with pytest.raises(LeaseLost, match=r"has a writer already \(pid \d+ on "):
        feed.ingest()
    lease.release()
    assert feed.ingest() == []


def test_an_overtaken_writer_cannot_publish(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2))
    feed.ingest()
    jvm, spark = Jvm(feed.services.spark), feed.services.spark
    asleep = Lease.take(jvm, feed.stream.table)
    commit = own_snapshots(jvm, feed.stream.table)[0].commit
    asleep.stage(spark.table(feed.table).limit(1), commit)
    monkeypatch.setattr(
        "spark_ingest.lease._Holder.alive", lambda self, last_write: False
    )
    awake = Lease.take(jvm, feed.stream.table)
    with pytest.raises(LeaseLost, match="was taken over"):
        asleep.publish()
    awake.release()
    assert feed.offsets() == [(0, 0), (0, 1)]


def test_a_write_that_makes_an_overtaken_writers_branch_anew_publishes_nothing(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg commits a write that was under way to its branch even where that is gone."""
    feed.send(*orders(feed.register(ORDER), 0, 2))
    feed.ingest()
    jvm, spark = Jvm(feed.services.spark), feed.services.spark
    asleep = Lease.take(jvm, feed.stream.table)
    monkeypatch.setattr(
        "spark_ingest.lease._Holder.alive", lambda self, last_write: False
    )
    awake = Lease.take(jvm, feed.stream.table)
    iceberg = jvm.iceberg_table(feed.stream.table)
    head = iceberg.currentSnapshot().snapshotId()
    iceberg.manageSnapshots().createBranch(asleep._holder.branch, head).commit()
    commit = own_snapshots(jvm, feed.stream.table)[0].commit
    asleep.stage(spark.table(feed.table).limit(1), commit)
    with pytest.raises(LeaseLost, match="was taken over"):
        asleep.publish()
    asleep.release()
    awake.check()
    awake.release()
    assert feed.offsets() == [(0, 0), (0, 1)]


def test_an_overtaken_writer_leaves_nothing_in_quarantine(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.register(ORDER)
    feed.send(b"junk")

    def overtaken(lease: Lease) -> None:
        raise LeaseLost("the table was taken over")

    monkeypatch.setattr(Lease, "publish", overtaken)
    with pytest.raises(LeaseLost):
        feed.ingest()
    assert feed.quarantined() == []


def test_nothing_is_published_over_a_table_that_moved(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2))
    feed.ingest()
    jvm, spark = Jvm(feed.services.spark), feed.services.spark
    lease = Lease.take(jvm, feed.stream.table)
    commit = own_snapshots(jvm, feed.stream.table)[0].commit
    lease.stage(spark.table(feed.table).limit(1), commit)
    spark.sql(f"insert into {feed.table} select * from {feed.table} limit 0")
    with pytest.raises(CommitRefused, match="moved meanwhile"):
        lease.publish()
    lease.release()
    assert len(feed.offsets()) == 2


def test_a_stream_whose_table_moved_reads_the_batch_again(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2), b"junk")
    publish = Lease.publish
    moved: list[bool] = []

    def after_another_commit(lease: Lease) -> None:
        if not moved:
            moved.append(True)
            spark = feed.services.spark
            spark.sql(f"insert into {feed.table} select * from {feed.table} limit 0")
        publish(lease)

    monkeypatch.setattr(Lease, "publish", after_another_commit)
    (batch,) = feed.ingest()
    assert batch.rows == 2
    assert "reading its offsets again" in feed.reports.notes[0]
    assert feed.offsets() == [(0, 0), (0, 1)]
    assert feed.quarantined() == [(2, "not_framed")]


def test_a_registry_that_goes_away_in_a_batch_is_waited_for(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2), framed(10**6, ORDER, {"id": 1, "note": ""}))
    ask = feed.services.registry.schema
    refusals: list[int] = []

    def away_once(schema_id: int) -> WriterSchema | None:
        if not refusals:
            refusals.append(schema_id)
            raise ServiceUnavailable("the registry is away")
        return ask(schema_id)

    monkeypatch.setattr(feed.services.registry, "schema", away_once)
    monkeypatch.setattr("spark_ingest.run._RETRY_SECONDS", 0.1)
    feed.ingest()
    assert refusals == [10**6]
    assert feed.reports.notes == ["the registry is away; waiting"]
    assert feed.offsets() == [(0, 0), (0, 1)]
    assert feed.quarantined() == [(2, "unknown_id")]


def test_what_a_broken_batch_left_in_quarantine_is_removed_at_the_next_start(
    feed: Feed,
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 1), b"junk")
    feed.ingest()
    feed.send(b"more junk")
    spark = feed.services.spark
    # A batch that was cut off behind the quarantine commit.
    spark.sql(
        f"insert into lake.bronze.quarantine select _kafka_topic, _kafka_topic_id, "
        f"_kafka_partition, 2, _kafka_timestamp, _kafka_key, _kafka_value, _kafka_headers, "
        f"_schema_id, 'left', 'left', 'left', _ingested_at, null, null, null "
        f"from lake.bronze.quarantine where _kafka_topic = '{feed.topic}'"
    )
    assert feed.quarantined() == [(1, "not_framed"), (2, "left")]
    feed.ingest()
    assert feed.quarantined() == [(1, "not_framed"), (2, "not_framed")]


def test_commits_that_a_crash_kept_out_of_the_log_are_written_down_at_the_next_start(
    feed: Feed,
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2), b"junk")
    feed.ingest()
    log = f"lake.{ledger.TABLE}"
    mine = f"table_name = '{feed.stream.table}'"
    spark = feed.services.spark
    spark.sql(f"delete from {log} where {mine}")
    feed.send(*orders(number, 2, 1))
    feed.ingest()
    rows = spark.table(log).where(mine).orderBy("commit_id").collect()
    assert [(r["commit_id"], r["row_count"], r["quarantined_count"]) for r in rows] == [
        (1, 2, 1), (2, 1, 0)
    ]  # fmt: skip


def test_a_lost_and_a_doubled_row_are_found(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 6))
    feed.send(*orders(number, 6, 2), partition=1)
    feed.ingest()
    spark = feed.services.spark
    spark.sql(
        f"delete from {feed.table} where _kafka_partition = 0 and _kafka_offset in (0, 3)"
    )
    spark.sql(
        f"insert into {feed.table} select * from {feed.table} "
        "where _kafka_partition = 1 and _kafka_offset = 1"
    )
    first, second = proofs(feed)
    assert first.missing == ((0, 1), (3, 4))
    assert (second.missing, second.doubled) == ((), 1)
    assert not first.holds
    assert not second.holds
    done = feed.stack.run(
        "spark-ingest", "--manifest", str(feed.manifest), "verify", check=False
    )
    assert done.returncode == 1
    assert f"{feed.stream.name} partition 0: missing offsets 0, 3" in done.stderr
    assert (
        f"{feed.stream.name} partition 1: 1 offsets are there more than once"
        in done.stderr
    )


def test_offsets_without_a_record_are_not_missing(feed: Feed) -> None:
    value = orders(feed.register(ORDER), 0, 1)[0]
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(30)
    for commits in (True, False, True):
        producer.begin_transaction()
        producer.produce(feed.topic, value, b"k", 0)
        producer.flush(30)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    feed.ingest()
    assert feed.offsets() == [(0, 0), (0, 4)]
    proof = proofs(feed)[0]
    assert proof.holds
    assert proof.empty == proof.end - 2


def test_a_topic_made_anew_stops_the_stream(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    feed.ingest()
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})
    admin.delete_topics([feed.topic])[feed.topic].result()
    wait_for(lambda: feed.services.broker.topic(feed.topic) is None)
    admin.create_topics([NewTopic(feed.topic, 2, 1)])[feed.topic].result()
    wait_for(lambda: feed.services.broker.topic(feed.topic))
    with pytest.raises(MillraceError, match="was deleted and made again"):
        feed.ingest()
    with pytest.raises(MillraceError, match="nothing can be proved"):
        proofs(feed)


def test_a_topic_made_anew_while_a_batch_is_read_is_not_committed(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2))
    run.create_tables(feed.services, [feed.stream])
    ask, stage, staged = Broker.existing_topic, Lease.stage, threading.Event()

    def then_stage(lease: Lease, rows: DataFrame, commit: Commit) -> None:
        stage(lease, rows, commit)
        staged.set()

    def another(broker: Broker, name: str, needed_by: str) -> Topic:
        topic = ask(broker, name, needed_by)
        return replace(topic, id="another") if staged.is_set() else topic

    monkeypatch.setattr(Lease, "stage", then_stage)
    monkeypatch.setattr(Broker, "existing_topic", another)
    with pytest.raises(MillraceError, match="was deleted and made again"):
        feed.ingest()
    assert feed.offsets() == []


def test_a_subject_that_is_gone_is_waited_for_and_no_record_blamed(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    run.create_tables(feed.services, [feed.stream])
    ask = feed.services.registry.subject_schemas
    asked: list[str] = []

    def gone_once(subject: str) -> list[WriterSchema]:
        asked.append(subject)
        return [] if len(asked) == 1 else ask(subject)

    monkeypatch.setattr(feed.services.registry, "subject_schemas", gone_once)
    monkeypatch.setattr("spark_ingest.run._RETRY_SECONDS", 0.1)
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (2, 0)
    assert "bring the subject back" in feed.reports.notes[0]


def test_a_table_without_its_own_snapshots_goes_on_by_rows_and_log(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    feed.ingest()
    feed.send(b"junk")
    feed.ingest()
    spark = feed.services.spark
    # Maintenance: a snapshot that is nobody's commit, and the others expired.
    spark.sql(f"insert into {feed.table} select * from {feed.table} limit 0")
    spark.sql(
        f"call lake.system.expire_snapshots(table => '{feed.stream.table}', "
        "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
    )
    assert own_snapshots(Jvm(spark), feed.stream.table) == []
    feed.send(*orders(number, 3, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (3, 1)
    assert feed.offsets() == [(0, 0), (0, 1), (0, 3)]
    assert feed.quarantined() == [(2, "not_framed")]
    assert all(proof.holds for proof in proofs(feed))


def test_records_that_expired_unread_stop_the_stream(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    feed.ingest()
    feed.send(*orders(number, 2, 4))
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})
    place = TopicPartition(feed.topic, 0, 4)
    admin.delete_records([place])[place].result()
    with pytest.raises(
        MillraceError, match="records 2 to 3 expired before they were read"
    ):
        feed.ingest()


def test_a_topic_without_a_schema_is_named(feed: Feed) -> None:
    with pytest.raises(ConfigurationError, match=f"subject {feed.topic}-value"):
        run.create_tables(feed.services, [feed.stream])


def test_plan_changes_nothing_and_says_what_would_be_done(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 4))
    run.create_tables(feed.services, [])
    planned = run.plan(feed.services, feed.stream)
    assert (planned.next_commit, planned.to_read, planned.partitions) == (1, 4, 2)
    assert "create the table" in planned.would
    assert not feed.services.spark.catalog.tableExists(feed.table)
    feed.ingest()
    feed.register(WIDER)
    planned = run.plan(feed.services, feed.stream)
    assert (planned.next_commit, planned.to_read) == (2, 0)
    assert planned.would == "add or widen channel"


def test_progress_lines_are_json_for_machines(
    feed: Feed, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_ingest.progress import LineProgress

    feed.send(*orders(feed.register(ORDER), 0, 4))
    feed.ingest()
    LineProgress().batch(feed.reports.batches[0])
    line = json.loads(capsys.readouterr().out)
    assert (line["stream"], line["rows"], line["lag"]) == (feed.stream.name, 4, 0)
    assert line["rows_per_second"] > 0
