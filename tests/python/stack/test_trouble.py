"""What one stream meets, and what the others notice of it: storage, sizes, the commit log.

Fails when one stream's failure stops another, or a batch outgrows the memory.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.required_settings import check_executors, check_limits, check_settings
from spark_ingest.streaming import run, tables
from spark_ingest.streaming.metrics import MetricsProgress
from spark_ingest.streaming.progress import BatchReport
from spark_ingest.streaming.tables import prepare
from tests.python.stack.conftest import ORDER, Feed, away, orders, proofs, running, wait_for, wide
from tests.python.world.avro import framed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def logged(feed: Feed) -> list[int]:
    """Commit ids of a feed's rows in the commit log."""
    log = feed.services.spark.table(f"lake.{commit_log.TABLE}")
    rows = log.where(f"table_name = '{feed.stream.table}' and commit_id > 0")
    return sorted(row[0] for row in rows.select("commit_id").collect())


def of(feed: Feed, batches: list[BatchReport]) -> int:
    """Records of a feed's stream in batches."""
    mine = [batch for batch in batches if batch.stream == feed.stream.name]
    return sum(batch.rows + batch.quarantined for batch in mine)


@pytest.mark.long
def test_a_stream_whose_storage_fails_leaves_the_other_alone_and_recovers(
    new_feed: Callable[[], Feed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_ingest.streaming.supervise._FIRST_SECONDS", 0.5)
    broken, good = new_feed(), new_feed()
    ids = {feed.topic: feed.register(ORDER) for feed in (broken, good)}
    names = [broken.stream.name, good.stream.name]
    metrics = MetricsProgress(good.reports, names, "127.0.0.1", 0)
    both = replace(good, services=replace(good.services, progress=metrics))

    def sample(name: str, feed: Feed, **labels: str) -> float:
        labels["stream"] = feed.stream.name
        return metrics.registry.get_sample_value(name, labels) or 0

    def troubles() -> float:
        """Pauses of the broken stream; a catalog that does not answer is a service."""
        failures = sample("millrace_restarts_total", broken, reason="failure")
        return failures + sample("millrace_waits_total", broken)

    with running(both, broken) as failures:
        for feed in (broken, good):
            feed.send(*orders(ids[feed.topic], 0, 2))
        wait_for(lambda: of(broken, good.reports.batches) == 2)
        wait_for(lambda: of(good, good.reports.batches) == 2)
        with away(broken):
            broken.send(*orders(ids[broken.topic], 2, 3))
            wait_for(lambda: troubles() >= 2)
            good.send(*orders(ids[good.topic], 2, 3))
            wait_for(lambda: of(good, good.reports.batches) == 5)
            assert sample("millrace_stream_up", broken) == 0
            assert sample("millrace_stream_up", good) == 1
        wait_for(lambda: of(broken, good.reports.batches) == 5)
        assert sample("millrace_stream_up", broken) == 1
    assert failures == []
    assert sample("millrace_restarts_total", good, reason="failure") == 0
    assert sample("millrace_waits_total", good) == 0
    reported = [note for note in good.reports.notes if good.stream.name in note]
    assert reported == []
    for feed in (broken, good):
        assert [proof.holds for proof in proofs(feed)] == [True, True]
        assert feed.offsets() == [(0, offset) for offset in range(5)]


def test_once_finishes_the_others_and_names_the_one_that_failed(
    new_feed: Callable[[], Feed],
) -> None:
    broken, good = new_feed(), new_feed()
    for feed in (broken, good):
        feed.send(*orders(feed.register(ORDER), 0, 2))
        feed.ingest()
        feed.send(*orders(feed.register(ORDER), 2, 1))
    settings = run.RunSettings(None, 1000, unknown_wait=0)
    streams = [broken.stream, good.stream]
    reported = f"1 of 2 streams failed: {broken.stream.name}: "
    with away(broken):
        # What looks at all tables before the first stream begins leaves it to its stream.
        bronze.refuse_copied(good.services.spark, [broken.stream.table, good.stream.table])
        prepare(good.services, streams)
        with pytest.raises(MillraceError, match=reported):
            run.run_streams(good.services, streams, settings, threading.Event())
    assert len(good.offsets()) == 3
    assert broken.ingest()[0].rows == 1


def test_a_stream_that_cannot_begin_leaves_the_others_to_begin(
    new_feed: Callable[[], Feed],
) -> None:
    good, no_topic, no_schema = new_feed(), new_feed(), new_feed()
    good.send(*orders(good.register(ORDER), 0, 2))
    no_topic.register(ORDER, f"{no_topic.topic}.none-value")
    no_schema.send(b"any")
    manifest = json.loads(good.manifest.read_text())
    for feed in (no_topic, no_schema):
        manifest["sources"] |= json.loads(feed.manifest.read_text())["sources"]
    (node,) = json.loads(no_topic.manifest.read_text())["sources"]
    manifest["sources"][node]["config"]["meta"]["ingest"]["topic"] += ".none"
    good.manifest.write_text(json.dumps(manifest))

    planned = good.command("plan")
    ran = good.command("run", "--once")

    for result, count in (planned, "could not start"), (ran, "failed"):
        assert result.exit_code == 1
        reported = str(result.exception)
        assert reported.startswith(f"2 of 3 streams {count}: "), reported
        assert f"{no_topic.stream.name}: " in reported
        assert f"topic {no_topic.topic}.none (source " in reported
        assert f"{no_schema.stream.name}: " in reported
        assert "no usable schema" in reported
    assert good.stream.table in planned.output
    first = planned.output.splitlines()[0]
    assert re.fullmatch(r"Spark 4\.\S+, master local\[2\]; catalog lake: jdbc, warehouse .+", first)
    assert good.offsets() == [(0, 0), (0, 1)]


@pytest.mark.nightly
def test_records_that_grow_tenfold_make_batches_of_fewer(feed: Feed) -> None:
    number = feed.register(ORDER)

    def padded(first: int, count: int, size: int) -> list[bytes]:
        return [
            framed(number, ORDER, {"id": i, "note": "n" * (size - 10)})
            for i in range(first, first + count)
        ]

    feed.send(*padded(0, 2200, 100), *padded(2200, 1000, 1000))
    tables.create_tables(feed.services, [feed.stream])
    settings = run.RunSettings(None, 1_000_000, 0.5, max_bytes=150_000)

    def ingest() -> list[BatchReport]:
        before = len(feed.reports.batches)
        run.run_streams(feed.services, [feed.stream], settings, threading.Event())
        return feed.reports.batches[before:]

    first, growing, *others = ingest()
    # Their size is known from a look at the first that wait.
    assert 1000 < first.rows <= 1500
    assert first.value_bytes <= 150_000
    # The one in which they grow is as much larger as they have grown, and no more.
    assert 150_000 < growing.value_bytes < 10 * 150_000
    assert [batch.value_bytes <= 150_000 for batch in others] == [True] * len(others)
    assert others
    # The next start looks at those that wait. Here keys are large; both partitions get a share.
    settings = replace(settings, max_bytes=500_000)
    key = b"k" * 900
    feed.send(*padded(3200, 550, 100), key=key)
    feed.send(*padded(3750, 550, 100), key=key, partition=1)
    taken = [batch.rows for batch in ingest()]
    assert max(taken) <= 500
    assert sum(taken) == 1100
    assert len(feed.offsets()) == 4300
    assert [proof.holds for proof in proofs(feed)] == [True, True]
    commits = [batch.commit_id for batch in feed.reports.batches]
    assert commits == list(range(1, len(commits) + 1))


@contextmanager
def result_size(feed: Feed, size: str) -> Iterator[None]:
    """Spark's limit for what the tasks of a job bring to the driver."""
    context: Any = feed.services.spark.sparkContext
    conf = context._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", size)
    try:
        yield
    finally:
        conf.remove("spark.driver.maxResultSize")


@pytest.mark.nightly
def test_a_batch_wholly_bad_on_many_partitions_ends_in_quarantine(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.register(ORDER)
    wide(feed, 8)
    # Fewer would go through one task.
    monkeypatch.setattr("spark_ingest.streaming.staged_batch.SMALL", 100)
    tables.create_tables(feed.services, [feed.stream])
    # Of a result below spark.task.maxDirectResultSize, a megabyte, Spark does not count what
    # the counters carry.
    for partition in range(8):
        feed.send(*[b"\1" * 7000] * 170, partition=partition)
    with result_size(feed, "4m"):
        (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (0, 1360)
    assert len(feed.quarantined()) == 1360
    assert all(proof.holds for proof in proofs(feed))


@pytest.mark.long
def test_half_a_million_bad_records_on_32_partitions_end_in_quarantine(feed: Feed) -> None:
    """544,000 of 2,400 bytes: carried along they were more than a driver takes."""
    feed.register(ORDER)
    wide(feed, 32)
    producer = feed.producer(**{"queue.buffering.max.kbytes": "100000"})
    for number in range(544_000):
        value = b"\1%08d" % number + b"\xfe" * 2391
        producer.produce(feed.topic, value, None, number % 32)
        if number % 1000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0
    batches = feed.ingest(max_records=2_500_000)
    assert sum(batch.quarantined for batch in batches) == 544_000
    rows = quarantine_table.of_topic(feed.services.spark, feed.topic)
    assert rows.select("_kafka_partition", "_kafka_offset").distinct().count() == (544_000)


def test_a_log_that_cannot_be_written_is_caught_up_without_a_restart(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_ingest.commits.commit_log_writer._SECONDS", 0.3)
    number, spark = feed.register(ORDER), feed.services.spark
    with running(feed) as failures:
        feed.send(*orders(number, 0, 1))
        wait_for(lambda: logged(feed) == [1])
        spark.sql(f"alter table lake.{commit_log.TABLE} rename to bronze.elsewhere")
        try:
            feed.send(*orders(number, 1, 1))
            wait_for(lambda: of(feed, feed.reports.batches) == 2)
            feed.send(*orders(number, 2, 1))
            wait_for(lambda: of(feed, feed.reports.batches) == 3)
            wait_for(lambda: any("commit log is behind" in n for n in feed.reports.notes))
        finally:
            spark.sql(f"alter table lake.bronze.elsewhere rename to {commit_log.TABLE}")
        wait_for(lambda: logged(feed) == [1, 2, 3])
    assert failures == []
    assert logged(feed) == [1, 2, 3]
    assert len(feed.reports.notes) == 2, feed.reports.notes


@pytest.mark.nightly
def test_an_overtaken_batch_is_removed_from_quarantine_in_any_zone(feed: Feed) -> None:
    feed.register(ORDER)
    feed.send(b"junk")
    feed.ingest()
    spark = feed.services.spark
    topic = feed.services.broker.existing_topic(feed.topic, feed.stream.name)
    (row,) = (
        quarantine_table.of_topic(spark, feed.topic)
        .selectExpr("unix_micros(_ingested_at)")
        .collect()
    )
    began = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row[0])
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        quarantine_table.remove_batch(spark, topic, began)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert feed.quarantined() == []


LANDING = (("run", "--once"), ("backfill",), ("quarantine", "replay"))
COMMANDS = (
    *LANDING,
    ("plan",),
    ("create",),
    ("verify",),
    ("recover", "--accept-gap"),
    ("maintain",),
    ("quarantine", "list"),
    ("quarantine", "discard", "--reason", "none"),
)


def test_every_command_looks_at_the_sessions_settings(feed: Feed) -> None:
    feed.register(ORDER)
    name, conf = "spark.sql.legacy.timeParserPolicy", feed.services.spark.conf
    before = conf.get(name)
    assert before is not None
    conf.set(name, "LEGACY")
    try:
        results = {words: feed.command(*words) for words in COMMANDS}
    finally:
        conf.set(name, before)
    for words, result in results.items():
        reported = f"{words}: {result.output}{result.exception}"
        assert f"{name} is LEGACY, and " in str(result.exception), reported


def test_every_command_that_decodes_looks_at_avros_limits(feed: Feed) -> None:
    feed.register(ORDER)
    with no_limit(feed.services.spark) as name:
        results = {words: feed.command(*words) for words in LANDING}
    for words, result in results.items():
        reported = f"{words}: {result.output}{result.exception}"
        assert f"{name} is 0 on the driver" in str(result.exception), reported


@contextmanager
def no_limit(spark: SparkSession) -> Iterator[str]:
    """One of Avro's limits is none, in the one JVM that is driver and executor; its name."""
    name = "org.apache.avro.limits.bytes.maxLength"
    jvm: Any = spark._jvm
    system = jvm.java.lang.System
    value = system.getProperty(name)
    system.setProperty(name, "0")
    try:
        yield name
    finally:
        system.setProperty(name, value)


def test_an_executor_without_avros_limits_is_refused(spark: SparkSession) -> None:
    check_limits(spark)
    with (
        no_limit(spark) as name,
        pytest.raises(ConfigurationError, match=f"{name} is 0 on an executor"),
    ):
        check_executors(spark)


def test_a_session_in_another_zone_is_refused(spark: SparkSession) -> None:
    check_settings(spark)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.raises(ConfigurationError, match="timeZone is America/New_York"):
            check_settings(spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
