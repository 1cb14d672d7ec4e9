"""From a real broker and registry into bronze: every record once, whatever it looks like.

Fails when a record is lost, doubled or miscounted between broker and bronze.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.streaming import plan, run, tables
from tests.python.stack.conftest import ORDER, Feed, orders, proofs, wait_for
from tests.python.world.avro import framed

WIDER = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "channel", "type": ["null", "string"], "default": None}],
}


def test_good_bad_and_tombstones_are_all_accounted_for(feed: Feed) -> None:
    number = feed.register(ORDER)
    good = orders(number, 0, 3)
    feed.send(good[0], None, b"junk", good[1])
    feed.send(good[2], good[2] + b"!", framed(10**6, ORDER, {"id": 1, "note": ""}), partition=1)
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined, batch.lag) == (4, 3, 0)
    rows = feed.services.spark.table(feed.table).orderBy("_kafka_partition", "_kafka_offset")
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
    assert feed.quarantined() == [(1, "left_over_bytes"), (2, "not_framed"), (2, "unknown_id")]
    aside = feed.services.spark.table("lake.bronze.quarantine")
    bytes_kept = aside.where(aside["_kafka_topic"] == feed.topic).select("_kafka_value").collect()
    assert b"junk" in [bytes(row[0]) for row in bytes_kept]
    assert all(proof.holds for proof in proofs(feed))
    (logged,) = feed.log().collect()
    assert (logged["row_count"], logged["quarantined_count"], logged["commit_id"]) == (4, 3, 1)
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


@pytest.mark.parametrize(("limit", "most"), [("_LARGEST_CARRIED", 100), ("_CARRIED_BYTES", 500)])
@pytest.mark.nightly
def test_bad_records_too_large_or_many_to_carry_are_read_again(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    feed.register(ORDER)
    monkeypatch.setattr(f"spark_ingest.streaming.staged_batch.{limit}", most)
    feed.send(b"small", b"x" * 200)
    (batch,) = feed.ingest()
    assert batch.quarantined == 2
    assert feed.quarantined() == [(0, "not_framed"), (1, "not_framed")]


def test_two_versions_of_a_schema_share_a_batch_and_a_table(feed: Feed) -> None:
    old, new = feed.register(ORDER), feed.register(WIDER)
    feed.send(framed(new, WIDER, {"id": 2, "note": "b", "channel": "web"}), *orders(old, 1, 1))
    (batch,) = feed.ingest()
    assert batch.rows == 2
    rows = feed.services.spark.table(feed.table).orderBy("id")
    assert [tuple(row) for row in rows.select("id", "channel").collect()] == [(1, None), (2, "web")]


def test_a_schema_of_another_subject_is_found_by_its_id(feed: Feed) -> None:
    feed.register(ORDER)
    other = feed.register(WIDER, subject=f"{feed.topic}-elsewhere")
    feed.send(framed(other, WIDER, {"id": 2, "note": "b", "channel": "web"}))
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (1, 0)
    assert feed.services.spark.table(feed.table).select("channel").collect()[0][0] == "web"


def test_a_new_field_adds_a_column_while_the_stream_runs(feed: Feed) -> None:
    old = feed.register(ORDER)
    feed.send(*orders(old, 0, 3))
    tables.create_tables(feed.services, [feed.stream])
    stopping, failures = threading.Event(), []

    def work() -> None:
        settings = run.RunSettings(0.2, 1000, unknown_wait=5)
        try:
            run.run_streams(feed.services, [feed.stream], settings, stopping)
        except MillraceError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_for(lambda: feed.reports.batches or failures)
        new = feed.register(WIDER)
        feed.send(framed(new, WIDER, {"id": 9, "note": "x", "channel": "app"}), *orders(old, 3, 1))
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


def test_a_lost_and_a_doubled_row_are_found(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 6))
    feed.send(*orders(number, 6, 2), partition=1)
    feed.ingest()
    spark = feed.services.spark
    spark.sql(f"delete from {feed.table} where _kafka_partition = 0 and _kafka_offset in (0, 3)")
    spark.sql(
        f"insert into {feed.table} select * from {feed.table} "
        "where _kafka_partition = 1 and _kafka_offset = 1"
    )
    first, second = proofs(feed)
    assert first.missing == ((0, 1), (3, 4))
    assert (second.missing, second.doubled) == ((), 1)
    assert not first.holds
    assert not second.holds
    done = feed.command("verify")
    assert done.exit_code == 1
    assert f"{feed.stream.name} partition 0: missing offsets 0, 3" in done.stderr
    assert f"{feed.stream.name} partition 1: 1 duplicate offsets" in done.stderr


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


def test_a_topic_without_a_schema_is_named(feed: Feed) -> None:
    with pytest.raises(ConfigurationError, match=f"subject {feed.topic}-value"):
        tables.create_tables(feed.services, [feed.stream])


def test_plan_changes_nothing_and_says_what_would_be_done(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 4))
    tables.create_tables(feed.services, [])
    planned = plan.plan(feed.services, feed.stream)
    assert (planned.next_commit, planned.to_read, planned.partitions) == (1, 4, 2)
    assert "create the table" in planned.would
    assert not feed.services.spark.catalog.tableExists(feed.table)
    feed.ingest()
    feed.register(WIDER)
    planned = plan.plan(feed.services, feed.stream)
    assert (planned.next_commit, planned.to_read) == (2, 0)
    assert planned.would == "add or widen channel"


def test_progress_lines_are_json_for_machines(
    feed: Feed, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_ingest.streaming.progress import LineProgress

    feed.send(*orders(feed.register(ORDER), 0, 4))
    feed.ingest()
    LineProgress().batch(feed.reports.batches[0])
    line = json.loads(capsys.readouterr().out)
    assert (line["stream"], line["rows"], line["lag"]) == (feed.stream.name, 4, 0)
    assert line["rows_per_second"] > 0


@pytest.mark.nightly
def test_where_a_table_begins_is_kept_though_nothing_came(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 3))
    tables.create_tables(feed.services, [feed.stream])
    latest = run.RunSettings(None, 1000, 0, begin="latest")
    run.run_streams(feed.services, [feed.stream], latest, threading.Event())
    assert feed.offsets() == []
    # What comes between two starts is not passed over, wherever the second one would begin.
    feed.send(*orders(number, 3, 2))
    run.run_streams(feed.services, [feed.stream], latest, threading.Event())
    assert feed.offsets() == [(0, 3), (0, 4)]
    first, _ = proofs(feed)
    assert (first.first, first.end, first.holds) == (3, 5, True)


@pytest.mark.nightly
def test_a_table_begins_where_asked_and_keeps_to_the_rate(feed: Feed) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 2))
    tables.create_tables(feed.services, [feed.stream])
    time.sleep(0.05)
    begin = datetime.now(UTC)
    time.sleep(0.01)
    feed.send(*orders(number, 2, 10))
    settings = run.RunSettings(None, 1000, 0, max_rate=5, begin=begin)
    began = time.monotonic()
    run.run_streams(feed.services, [feed.stream], settings, threading.Event())
    assert time.monotonic() - began > 10 / 5
    assert [batch.rows for batch in feed.reports.batches] == [5, 5]
    assert feed.offsets() == [(0, offset) for offset in range(2, 12)]
    # Begun once, it goes on where it stands.
    latest = replace(settings, begin="latest")
    feed.send(*orders(number, 12, 1))
    run.run_streams(feed.services, [feed.stream], latest, threading.Event())
    assert feed.offsets()[-1] == (0, 12)
    first, _ = proofs(feed)
    assert (first.first, first.end, first.holds) == (2, 13, True)


def test_a_stream_has_a_pool_of_its_own_so_that_no_large_batch_delays_others(feed: Feed) -> None:
    """More records than are written in the driver, so that there are tasks."""
    feed.send(*orders(feed.register(ORDER), 0, 6000))
    feed.ingest()
    scheduler = feed.services.spark.sparkContext._jsc.sc()
    assert scheduler.getSchedulingMode().toString() == "FAIR"
    assert scheduler.getPoolForName(feed.stream.name).isDefined()
