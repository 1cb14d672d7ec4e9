"""Run all checks, and post new and resolved alerts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from spark_ingest.alerts import alert_log, kafka_checks, lake_checks
from spark_ingest.alerts.alert import Found
from spark_ingest.alerts.alert_log import Notice
from spark_ingest.alerts.promises import Promises
from spark_ingest.connect.broker import Broker
from spark_ingest.errors import ServiceUnavailable
from spark_ingest.sources import Stream


@dataclass(frozen=True)
class Limits:
    """The thresholds of the checks.

    Attributes:
        patience: Age of an unread record at which its stream counts as stopped.
        quarantine: Records quarantined within this time raise an alert.
    """

    patience: timedelta
    quarantine: timedelta


def look(
    spark: SparkSession, broker: Broker, streams: list[Stream], promises: Promises, limits: Limits
) -> Found:
    """Run all checks."""
    now = datetime.now(UTC)
    return (
        lake_checks.of_runs(spark, promises, now)
        + lake_checks.of_sources(spark, promises, now)
        + lake_checks.of_quarantine(spark, streams, limits.quarantine, now)
        + kafka_checks.of_streams(spark, broker, streams, limits.patience, now)
    )


def post_news(
    spark: SparkSession, found: Found, post: Callable[[Notice], None]
) -> tuple[list[Notice], ServiceUnavailable | None]:
    """Post new and resolved alerts, each once.

    Posted notices are recorded even if a later one fails; the rest is posted after the next
    check. If the process is killed before it has recorded a notice, it is posted again. ``post``
    raises ServiceUnavailable if the receiver does not accept the notice. Returns the posted
    notices, and the error of the first one that failed.
    """
    alert_log.create(spark)
    posted: list[Notice] = []
    failure: ServiceUnavailable | None = None
    for notice in alert_log.to_post(alert_log.opened(spark), found):
        try:
            post(notice)
        except ServiceUnavailable as error:
            failure = error
            break
        posted.append(notice)
    if posted:
        alert_log.append(spark, posted, datetime.now(UTC))
    return posted, failure
