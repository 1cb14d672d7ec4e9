"""The table is the checkpoint: two writers, moved tables, and what a crash leaves behind.

Fails when an overtaken writer, a moved table or a crash leads to a wrong commit.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from spark_ingest.commits import commit_log
from spark_ingest.commits.committed import Commit, CommitKind, own_snapshots
from spark_ingest.commits.lease import Lease
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.connect.broker import Broker, Topic
from spark_ingest.data_files import parquet
from spark_ingest.data_files.stage import append_rows
from spark_ingest.errors import (
    CommitRefused,
    ConfigurationError,
    LeaseLost,
    MillraceError,
    ServiceUnavailable,
)
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import Jvm
from spark_ingest.streaming import staged_batch, tables
from spark_ingest.streaming.side_commit import commit_beside
from tests.python.leases import take
from tests.python.stack.conftest import ORDER, Feed, orders, proofs
from tests.python.world.avro import framed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_ingest.avro.framing import Ids
    from spark_ingest.avro.schema import WriterSchema
    from spark_ingest.commits.resume import Position


def test_a_second_writer_is_refused_and_reported_who_writes(feed: Feed) -> None:
    feed.register(ORDER)
    tables.create_tables(feed.services, [feed.stream])
    jvm = Jvm(feed.services.spark)
    lease = take(jvm, feed.stream.table)
    with pytest.raises(LeaseLost, match=r"has a writer already \(pid \d+ on "):
        feed.ingest()
    lease.release()
    assert feed.ingest() == []


def taken(feed: Feed) -> tuple[Jvm, SparkSession, Lease]:
    """A table of two records, and a writer that has taken it."""
    feed.send(*orders(feed.register(ORDER), 0, 2))
    feed.ingest()
    jvm, spark = Jvm(feed.services.spark), feed.services.spark
    return jvm, spark, take(jvm, feed.stream.table)


def test_an_overtaken_writer_cannot_publish(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm, spark, asleep = taken(feed)
    commit = own_snapshots(jvm, feed.stream.table)[0].commit
    asleep.stage(partial(append_rows, spark.table(feed.table).limit(1), commit))
    monkeypatch.setattr("spark_ingest.commits.lease.Holder.alive", lambda self, last_write: False)
    awake = take(jvm, feed.stream.table)
    with pytest.raises(LeaseLost, match="was taken over"):
        asleep.publish()
    awake.release()
    assert feed.offsets() == [(0, 0), (0, 1)]


def test_a_write_that_makes_an_overtaken_writers_branch_anew_publishes_nothing(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg commits a write that was under way to its branch even where that is gone."""
    jvm, spark, asleep = taken(feed)
    monkeypatch.setattr("spark_ingest.commits.lease.Holder.alive", lambda self, last_write: False)
    awake = take(jvm, feed.stream.table)
    iceberg = jvm.iceberg_table(feed.stream.table)
    head = iceberg.currentSnapshot().snapshotId()
    iceberg.manageSnapshots().createBranch(asleep._holder.branch, head).commit()
    commit = own_snapshots(jvm, feed.stream.table)[0].commit
    asleep.stage(partial(append_rows, spark.table(feed.table).limit(1), commit))
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


def test_a_batch_whose_bad_records_cannot_be_kept_is_not_published(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2), b"junk")

    def away(bad: DataFrame, many: bool = False) -> None:
        raise MillraceError("quarantine is away")

    with monkeypatch.context() as patch:
        patch.setattr("spark_ingest.commits.quarantine_table.append", away)
        with pytest.raises(MillraceError, match="quarantine is away"):
            feed.ingest()
    assert feed.offsets() == []
    feed.ingest()
    assert feed.offsets() == [(0, 0), (0, 1)]
    assert feed.quarantined() == [(2, "not_framed")]


def test_nothing_is_published_over_a_table_that_moved(feed: Feed) -> None:
    jvm, spark, lease = taken(feed)
    commit = own_snapshots(jvm, feed.stream.table)[0].commit
    lease.stage(partial(append_rows, spark.table(feed.table).limit(1), commit))
    spark.sql(f"insert into {feed.table} select * from {feed.table} limit 0")
    with pytest.raises(CommitRefused, match="changed concurrently"):
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


@pytest.mark.nightly
def test_a_commit_that_comes_while_a_staged_batch_waits_keeps_its_id_for_itself(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 1))
    feed.ingest()
    feed.send(*orders(number, 1, 1), framed(10**6, ORDER, {"id": 1, "note": ""}))
    spark, ask = feed.services.spark, feed.services.registry.schema
    beside: list[Commit | None] = []

    def nothing(here: Position) -> tuple[DataFrame, Commit]:
        number, topic = here.commit_id + 1, str(here.topic_id)
        kind, resume = CommitKind.REPLAY, here.offsets
        commit = Commit(number, topic, {}, {}, kind, resume=resume)
        return spark.table(feed.table).limit(0), commit

    def away_once(schema_id: int, ids: Ids) -> WriterSchema | None:
        if not beside:
            uuid = uuid_of(Jvm(spark), feed.stream.table)
            beside.append(commit_beside(spark, feed.stream, uuid, nothing))
            raise ServiceUnavailable("the registry is away")
        return ask(schema_id, ids)

    monkeypatch.setattr(feed.services.registry, "schema", away_once)
    monkeypatch.setattr("spark_ingest.streaming.run._RETRY_SECONDS", 0.1)
    feed.ingest()
    (replayed,) = beside
    assert replayed is not None
    assert replayed.id == 2
    found = own_snapshots(Jvm(spark), feed.stream.table)
    assert [own.commit.id for own in found] == [3, 2, 1]
    assert feed.offsets() == [(0, 0), (0, 1)]
    assert feed.quarantined() == [(2, "unknown_id")]


@pytest.mark.nightly
def test_a_registry_that_goes_away_in_a_batch_is_waited_for(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2), framed(10**6, ORDER, {"id": 1, "note": ""}))
    ask = feed.services.registry.schema
    refusals: list[int] = []

    def away_once(schema_id: int, ids: Ids) -> WriterSchema | None:
        if not refusals:
            refusals.append(schema_id)
            raise ServiceUnavailable("the registry is away")
        return ask(schema_id, ids)

    monkeypatch.setattr(feed.services.registry, "schema", away_once)
    monkeypatch.setattr("spark_ingest.streaming.run._RETRY_SECONDS", 0.1)
    feed.ingest()
    assert refusals == [10**6]
    (note,) = feed.reports.notes
    assert note == f"{feed.stream.name}: the registry is away; waiting"
    assert feed.offsets() == [(0, 0), (0, 1)]
    assert feed.quarantined() == [(2, "unknown_id")]


def test_what_a_broken_batch_left_in_quarantine_is_removed_at_the_next_start(feed: Feed) -> None:
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
    log = f"lake.{commit_log.TABLE}"
    mine = f"table_name = '{feed.stream.table}'"
    spark = feed.services.spark
    spark.sql(f"delete from {log} where {mine}")
    feed.send(*orders(number, 2, 1))
    feed.ingest()
    counts = feed.log().select("commit_id", "row_count", "quarantined_count")
    assert [tuple(row) for row in counts.collect()] == [
        (1, 2, 1), (2, 1, 0)
    ]  # fmt: skip


@pytest.mark.nightly
def test_a_lake_that_was_copied_from_elsewhere_is_refused(feed: Feed, tmp_path: Path) -> None:
    feed.register(ORDER)
    tables.create_tables(feed.services, [feed.stream])
    spark, key = feed.services.spark, "spark.sql.catalog.lake.warehouse"
    here = str(spark.conf.get(key))
    names = [feed.stream.table, "bronze.not_there"]
    bronze.refuse_copied(spark, names)
    try:
        spark.conf.set(key, str(tmp_path))
        with pytest.raises(ConfigurationError, match="its metadata was copied"):
            bronze.refuse_copied(spark, names)
        # A link to where the tables are is as good as the place itself.
        (tmp_path / "link").symlink_to(here)
        spark.conf.set(key, str(tmp_path / "link"))
        bronze.refuse_copied(spark, names)
    finally:
        spark.conf.set(key, here)


@pytest.fixture(params=["in tasks", "on the driver"])
def write(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What writes frames of a batch, by its name in :mod:`staged_batch`: where they are made."""
    if request.param == "on the driver":
        return "write_frame"
    monkeypatch.setattr(staged_batch, "SMALL", 1)
    return "write_frames"


@pytest.mark.usefixtures("write")
def test_frames_have_the_records_of_their_batch_and_no_others(feed: Feed) -> None:
    number = feed.register(ORDER)
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions(30)
    sent = []

    def kept(_error: object, message: Message) -> None:
        # Where the broker put it: the marker of a transaction that has ended may come later than
        # the next record of another producer.
        sent.append((message.partition(), message.offset()))

    for turn, end in enumerate(2 * (producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        on_delivery = kept if end == producer.commit_transaction else None
        for value in orders(number, 10 * turn, 5):
            producer.produce(feed.topic, value, b"k", turn % 2, on_delivery=on_delivery)
        producer.flush(30)
        end(30)
    plain = feed.producer()
    for value in orders(number, 50, 7):
        plain.produce(feed.topic, value, b"k", 1, on_delivery=kept)
    plain.flush(30)
    assert len(sent) == 2 * 5 + 7
    reports = feed.ingest(max_records=4)
    assert len(reports) > 5
    assert sum(report.quarantined for report in reports) == 0
    assert sorted(feed.offsets()) == sorted(sent)
    assert not feed.reports.notes
    assert all(proof.holds for proof in proofs(feed))


def test_a_batch_in_files_of_arrow_is_committed_whole_or_not_at_all(
    feed: Feed, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 9), b"junk")
    feed.send(*orders(number, 10, 9), b"junk", partition=1)
    (report,) = feed.ingest()
    assert (report.rows, report.quarantined) == (18, 2)
    assert all(proof.holds for proof in proofs(feed))

    def fails(_form: object) -> Any:
        def run(batches: Any) -> Any:
            # One task has done its work, with bad records counted, and another has not.
            for _ in batches:
                raise pa.ArrowInvalid("not so")
            yield from ()

        return run

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "parquet_parts", fails)
        feed.send(*orders(number, 30, 5), b"junk")
        (report,) = feed.ingest()
    assert (report.rows, report.quarantined) == (5, 1)
    assert [note for note in feed.reports.notes if "not so: falling back to Iceberg" in note]

    with monkeypatch.context() as patch:
        # No room for what frames leave.
        patch.setattr(staged_batch, "_LEFT_BYTES", 0)
        feed.send(*orders(number, 40, 5), b"junk")
        (report,) = feed.ingest()
    assert (report.rows, report.quarantined) == (5, 1)

    whole = getattr(staged_batch, write)

    def one_lost(*words: Any, **named: Any) -> list[Any]:
        *others, file = whole(*words, **named)
        return [*others, SimpleNamespace(recordCount=lambda: file.recordCount() - 1)]

    monkeypatch.setattr(staged_batch, write, one_lost)
    feed.send(*orders(number, 20, 3))
    with pytest.raises(MillraceError, match="wrote 2 rows of 3 good records"):
        feed.ingest()
    monkeypatch.undo()
    feed.ingest()
    assert len(feed.offsets()) == 31
    assert all(proof.holds for proof in proofs(feed))


def test_a_topic_recreated_while_a_batch_is_read_is_not_committed(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2))
    tables.create_tables(feed.services, [feed.stream])
    ask, whole, staged = Broker.existing_topic, Lease.stage_files, threading.Event()

    def then_stage(lease: Lease, files: list[Any], commit: Commit) -> None:
        whole(lease, files, commit)
        staged.set()

    def another(broker: Broker, name: str, needed_by: str) -> Topic:
        topic = ask(broker, name, needed_by)
        return replace(topic, id="another") if staged.is_set() else topic

    monkeypatch.setattr(Lease, "stage_files", then_stage)
    monkeypatch.setattr(Broker, "existing_topic", another)
    with pytest.raises(MillraceError, match="was deleted and recreated"):
        feed.ingest()
    assert feed.offsets() == []


@pytest.mark.nightly
def test_a_subject_that_is_gone_is_waited_for_and_no_record_blamed(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    tables.create_tables(feed.services, [feed.stream])
    ask = feed.services.registry.subject_schemas
    asked: list[str] = []

    def gone_once(subject: str, ids: Ids) -> list[WriterSchema]:
        asked.append(subject)
        return [] if len(asked) == 1 else ask(subject, ids)

    monkeypatch.setattr(feed.services.registry, "subject_schemas", gone_once)
    monkeypatch.setattr("spark_ingest.streaming.run._RETRY_SECONDS", 0.1)
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (2, 0)
    assert "restore the subject" in feed.reports.notes[0]


@pytest.mark.nightly
def test_a_commit_beside_the_stream_is_numbered_behind_it(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    feed.ingest()
    spark, seen = feed.services.spark, list[int]()

    def nothing(here: Position) -> tuple[DataFrame, Commit]:
        if not seen:
            # The stream is faster once.
            feed.send(*orders(number, 2, 1))
            feed.ingest()
        seen.append(here.commit_id)
        commit = Commit(
            here.commit_id + 1, str(here.topic_id), {0: 3}, {0: 3}, CommitKind.REPLAY,
            resume=here.offsets,
        )  # fmt: skip
        return spark.table(feed.table).limit(0), commit

    commit = commit_beside(spark, feed.stream, uuid_of(Jvm(spark), feed.stream.table), nothing)
    assert seen == [1, 2]
    assert commit is not None
    newest = own_snapshots(Jvm(spark), feed.stream.table)[0].commit
    assert newest == commit
    refs = Jvm(spark).iceberg_table(feed.stream.table).refs()
    assert sorted(refs) == ["main"]
    feed.send(*orders(number, 3, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (4, 1)
    assert feed.offsets() == [(0, 0), (0, 1), (0, 2), (0, 3)]
