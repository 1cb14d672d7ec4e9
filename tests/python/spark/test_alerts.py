"""What the lake's own tables say of what needs a person, and that it is posted once.

Fails when something that needs a person is passed over, something else is posted, or a notice comes
twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from spark_ingest.alerts import alert_log, lake_checks
from spark_ingest.alerts.alert import Alert, Found, Kind
from spark_ingest.alerts.alert_log import Event, Notice
from spark_ingest.alerts.look import post_news
from spark_ingest.alerts.promises import FreshExposure, FreshSource, Promises
from spark_ingest.commits import quarantine_table
from spark_ingest.errors import ServiceUnavailable
from spark_ingest.lake import bronze
from spark_ingest.sources import IngestMeta, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime.now(UTC).replace(microsecond=0)
RUNS = "alert_check.runs"
STREAM = Stream(
    "pagila.sales", "alert_check.sales", "", {}, frozenset(), IngestMeta(topic="alerts.sales")
)
NOTHING = Promises(RUNS, frozenset(), (), ())
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> Iterator[None]:
    """Runs of dbt, a stream's table, and quarantine."""
    spark.sql("create namespace if not exists alert_check")
    spark.sql(
        f"create table {RUNS} (node_id string, node_name string, node_type string,"
        " run_status string, message string, started_at timestamp) using iceberg"
    )
    spark.sql(f"create table {STREAM.table} (_ingested_at timestamp) using iceberg")
    bronze.create_schema(spark)
    quarantine_table.create(spark)
    yield
    for table in (RUNS, STREAM.table, alert_log.TABLE):
        spark.sql(f"drop table if exists {table} purge")


def ago(**length: float) -> str:
    return f"timestamp '{NOW - timedelta(**length):%Y-%m-%d %H:%M:%S}'"


def write(spark: SparkSession, *runs: str) -> None:
    spark.sql(f"delete from {RUNS} where true")
    spark.sql(f"insert into {RUNS} values {', '.join(runs)}")


def test_the_newest_run_of_a_node_counts_unless_it_was_skipped(spark: SparkSession) -> None:
    write(
        spark,
        f"('model.m.a', 'a', 'model', 'error', 'no column', {ago(hours=2)})",
        f"('model.m.a', 'a', 'model', 'skipped', null, {ago(hours=1)})",
        f"('test.m.b', 'b', 'test', 'fail', 'Got 3 results', {ago(hours=2)})",
        f"('test.m.b', 'b', 'test', 'pass', null, {ago(hours=1)})",
        f"('test.m.c', 'c', 'test', 'warn', 'Got 1 result', {ago(hours=1)})",
        f"('test.m.d', 'd', 'test', 'fail', 'Got 2 results', {ago(hours=1)})",
        f"('model.m.gone', 'gone', 'model', 'error', 'x', {ago(hours=1)})",
    )
    nodes = frozenset({"model.m.a", "test.m.b", "test.m.c", "test.m.d"})

    found = lake_checks.of_runs(spark, replace(NOTHING, nodes=nodes), NOW)

    assert [(a.subject, a.help) for a in found.alerts] == [
        ("model.m.a", "dbt build --select a"),
        ("test.m.d", "dbt test --select d"),
    ]
    assert found.alerts[1].message.endswith("UTC: Got 2 results")
    assert not found.unknown


def test_a_mart_is_as_old_as_its_newest_good_build(spark: SparkSession) -> None:
    write(
        spark,
        f"('model.m.fresh', 'fresh', 'model', 'success', null, {ago(minutes=50)})",
        f"('model.m.old', 'old', 'model', 'success', null, {ago(minutes=70)})",
        f"('model.m.old', 'old', 'model', 'error', 'x', {ago(minutes=10)})",
    )
    models = {
        "model.m.fresh": "marts.fresh",
        "model.m.old": "marts.old",
        "model.m.never": "marts.never",
        # It is there, and no run on record made it.
        "model.m.forgotten": STREAM.table,
    }
    promises = replace(NOTHING, exposures=(FreshExposure("board", HOUR, models),))

    found = lake_checks.of_runs(spark, promises, NOW)

    assert [(a.kind, a.subject) for a in found.alerts] == [
        (Kind.OLD_MART, "board: old"),
        (Kind.OLD_MART, "board: forgotten"),
    ]
    assert "allows 1 hour at most" in found.alerts[0].message


def test_without_runs_nothing_is_known_of_them(spark: SparkSession) -> None:
    for runs in (None, "alert_check.never"):
        found = lake_checks.of_runs(spark, replace(NOTHING, runs=runs), NOW)

        assert found == Found((), frozenset({Kind.FAILED_NODE, Kind.OLD_MART}))


def test_a_source_is_stale_when_its_newest_row_is_too_old(spark: SparkSession) -> None:
    declared = FreshSource("pagila.sales", STREAM.table, "_ingested_at", HOUR)
    never = FreshSource("pagila.none", "alert_check.none", "_ingested_at", HOUR)
    promises = replace(NOTHING, sources=(declared, never))

    def found() -> list[str]:
        return [a.message for a in lake_checks.of_sources(spark, promises, NOW).alerts]

    assert found() == []
    spark.sql(f"insert into {STREAM.table} values ({ago(hours=2)})")
    (message,) = found()
    assert f"{NOW - 2 * HOUR:%Y-%m-%d %H:%M:%S} UTC; the maximum age is 1 hour" in message
    spark.sql(f"insert into {STREAM.table} values ({ago(minutes=59)})")
    assert found() == []


def test_records_that_lately_went_to_quarantine_and_wait_there_are_news(
    spark: SparkSession,
) -> None:
    def put(reason: str, at: str, **settled: str) -> None:
        given = {
            "_kafka_topic": "'alerts.sales'",
            "error_class": f"'{reason}'",
            "_ingested_at": at,
            **settled,
        }
        spark.sql(
            f"insert into {quarantine_table.TABLE} ({', '.join(given)})"
            f" values ({', '.join(given.values())})"
        )

    def found() -> list[str]:
        of = lake_checks.of_quarantine(spark, [STREAM], HOUR, NOW)
        return [a.message for a in of.alerts]

    put("OLD", ago(hours=2))
    put("REPLAYED", ago(minutes=5), replayed_at=ago(minutes=1))
    put("DISCARDED", ago(minutes=5), discarded_at=ago(minutes=1))
    assert found() == []

    put("BROKEN_RULE", ago(minutes=5))
    assert found() == ["1 records went to quarantine within 1 hour, most of them as BROKEN_RULE"]


def test_what_is_posted_is_written_down_and_not_posted_again(spark: SparkSession) -> None:
    first = Alert(Kind.GAP, "a", "it's \\ so", "recover")
    second = Alert(Kind.STALE_SOURCE, "b", "old", "dbt")
    taken: list[Notice] = []

    def refuse_second(notice: Notice) -> None:
        if notice.alert == second:
            raise ServiceUnavailable("away")
        taken.append(notice)

    posted, failure = post_news(spark, Found((first, second)), refuse_second)
    assert [n.alert for n in posted] == [first]
    assert str(failure) == "away"

    post_news(spark, Found((first, second)), taken.append)
    post_news(spark, Found((first, second)), taken.append)
    post_news(spark, Found((second,), frozenset({Kind.STALE_SOURCE})), taken.append)
    post_news(spark, Found(()), taken.append)
    # It is back.
    post_news(spark, Found((first,)), taken.append)

    assert [(n.event, n.alert) for n in taken] == [
        (Event.BEGAN, first),
        (Event.BEGAN, second),
        (Event.OVER, first),
        (Event.OVER, second),
        (Event.BEGAN, first),
    ]
