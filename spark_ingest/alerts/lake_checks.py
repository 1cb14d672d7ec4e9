"""Alerts from the lake's tables: dbt runs, stale sources, quarantine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_ingest.alerts.alert import Alert, Found, Kind
from spark_ingest.alerts.promises import Promises
from spark_ingest.commits import quarantine_table
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG
from spark_ingest.sources import Stream

# The statuses of `run_results.json`; warnings raise no alert.
_FAILED = ("error", "fail", "runtime error", "partial success")
_SUCCEEDED = "success"
_NOT_RUN = ("skipped", "no-op")


def of_runs(spark: SparkSession, promises: Promises, now: datetime) -> Found:
    """Alerts for nodes whose newest run failed, and marts older than an exposure allows.

    ``now`` is time zone aware.
    """
    if promises.runs is None or not bronze.exists(spark, promises.runs):
        return Found((), frozenset({Kind.FAILED_NODE, Kind.OLD_MART}))
    runs = spark.table(f"{CATALOG}.{promises.runs}")
    newest = (
        runs.where(~F.col("run_status").isin(*_NOT_RUN))
        .groupBy("node_id")
        .agg(F.max_by(F.struct("*"), "started_at").alias("run"))
        .select("run.*")
        .where(F.col("run_status").isin(*_FAILED))
        .orderBy("node_id")
        .collect()
    )
    failed = tuple(_failed(run) for run in newest if run["node_id"] in promises.nodes)
    return Found(failed + _old_marts(spark, promises, now))


def _failed(run: Row) -> Alert:
    node, kind = run["node_name"], run["node_type"]
    command = "dbt test" if kind in ("test", "unit_test") else "dbt build"
    return Alert(
        Kind.FAILED_NODE,
        run["node_id"],
        f"{kind} {node}: {run['run_status']} at {_time(run['started_at'])}"
        f": {run['message'] or 'no message'}",
        f"{command} --select {node}",
    )


def _old_marts(spark: SparkSession, promises: Promises, now: datetime) -> tuple[Alert, ...]:
    if not promises.exposures:
        return ()
    built = {
        row[0]: row[1]
        for row in spark.table(f"{CATALOG}.{promises.runs}")
        .where(F.col("run_status") == _SUCCEEDED)
        .groupBy("node_id")
        .agg(F.max("started_at"))
        .collect()
    }
    found = []
    for exposure in promises.exposures:
        oldest = now - exposure.max_age
        for node, relation in exposure.models.items():
            at = built.get(node)
            # No alert before the first build. A mart without a recorded run was built before
            # the oldest one.
            if at is None and not bronze.exists(spark, relation):
                continue
            if at is None or at.astimezone(oldest.tzinfo) < oldest:
                when = "before the oldest recorded run" if at is None else _time(at)
                name = node.rpartition(".")[2]
                found.append(
                    Alert(
                        Kind.OLD_MART,
                        f"{exposure.name}: {name}",
                        f"{name} was built {when}; exposure {exposure.name} allows "
                        f"{_length(exposure.max_age)} at most",
                        f"dbt build --select +{name}",
                    )
                )
    return tuple(found)


def of_sources(spark: SparkSession, promises: Promises, now: datetime) -> Found:
    """Alerts for sources that exceed their freshness; sources without a table are skipped."""
    found = []
    for source in promises.sources:
        if not bronze.exists(spark, source.table):
            continue
        loaded_at = F.max(F.expr(source.loaded_at))
        (row,) = spark.table(f"{CATALOG}.{source.table}").agg(loaded_at).collect()
        if row[0] is None or row[0].astimezone(now.tzinfo) >= now - source.max_age:
            continue
        found.append(
            Alert(
                Kind.STALE_SOURCE,
                source.name,
                f"the newest row of {source.table} is from {_time(row[0])}; "
                f"the maximum age is {_length(source.max_age)}",
                f"dbt source freshness --select source:{source.name}",
            )
        )
    return Found(tuple(found))


def of_quarantine(
    spark: SparkSession, streams: list[Stream], window: timedelta, now: datetime
) -> Found:
    """Alerts for streams with open records that were quarantined within ``window``.

    ``now`` is time zone aware.
    """
    if not bronze.exists(spark, quarantine_table.TABLE):
        return Found(())
    waiting = (
        spark.table(f"{CATALOG}.{quarantine_table.TABLE}")
        .where(F.col("_ingested_at") >= F.lit(now - window))
        .where("replayed_at is null and discarded_at is null")
        .groupBy("_kafka_topic")
        .agg(F.count(F.lit(1)), F.mode("error_class"))
        .collect()
    )
    counted = {row[0]: (row[1], row[2]) for row in waiting}
    return Found(
        tuple(
            Alert(
                Kind.QUARANTINE,
                stream.name,
                f"{counted[stream.topic][0]:,} records went to quarantine within "
                f"{_length(window)}, most of them as {counted[stream.topic][1]}",
                f"spark-ingest quarantine list {stream.name}",
            )
            for stream in streams
            if stream.topic in counted
        )
    )


def _time(at: datetime) -> str:
    # PySpark returns naive datetimes in the local time zone.
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _length(of: timedelta) -> str:
    for unit, seconds in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count, rest = divmod(of.total_seconds(), seconds)
        if count and not rest:
            return f"{count:.0f} {unit}{'s' if count > 1 else ''}"
    return f"{of.total_seconds():g} seconds"
