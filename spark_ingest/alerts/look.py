"""One look at all that may need a person, and what is posted of it."""

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
    """When something needs a person.

    Attributes:
        patience: How old a record may become before a stream that has not read it counts as
            stopped.
        quarantine: For how long a record in quarantine is news.
    """

    patience: timedelta
    quarantine: timedelta


def look(
    spark: SparkSession, broker: Broker, streams: list[Stream], promises: Promises, limits: Limits
) -> Found:
    """All that needs a person now."""
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
    """Post what began and what is over, each once.

    What was posted is written down before an error is given back; the rest is posted after the
    next look. Killed between post and writing down, it posts a notice again. ``post`` raises
    ServiceUnavailable where the receiver does not take the notice. Returns what was posted, and
    why the rest was not.
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
