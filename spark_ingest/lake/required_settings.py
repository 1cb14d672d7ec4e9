"""Settings of Spark that the tables' exactness rests on, looked at before anything is written.

With another value nothing would fail: rows would be doubled, changed, or not found again.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.jvm import CATALOG, Jvm

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00")
# Each with the values that will do, the first of which is named, and what another does.
_SETTINGS: dict[str, tuple[tuple[str, ...], str]] = {
    "spark.sql.session.timeZone": (_UTC, "times in SQL would mean others"),
    f"spark.sql.catalog.{CATALOG}.cache-enabled": (
        ("false",),
        "what other writers have committed would not be seen",
    ),
    "spark.sql.ansi.enabled": (("true",), "a value too large would become another"),
    "spark.sql.storeAssignmentPolicy": (
        ("ANSI", "STRICT"),
        "a value too large would become another",
    ),
    "spark.sql.avro.datetimeRebaseModeInRead": (
        ("CORRECTED",),
        "dates before 1582 would become others",
    ),
    "spark.sql.legacy.timeParserPolicy": (
        ("CORRECTED", "EXCEPTION"),
        "times of JSON would be read as others",
    ),
}
_LIMITS = {
    "org.apache.avro.limits.string.maxLength": 16777216,
    "org.apache.avro.limits.bytes.maxLength": 16777216,
    "org.apache.avro.limits.collectionItems.maxLength": 1000000,
}
# Beyond it a record of a few bytes that claims as many ends an executor.
_HIGHEST_LIMIT = 2**30
_TASKS_PER_CORE = 2
_MOST_TASKS = 1000


def check_settings(spark: SparkSession) -> None:
    """Refuse a session in which rows could be wrong.

    Raises:
        ConfigurationError: A setting has another value; the text names it and the line to write.
    """
    values: dict[str, str | None] = {}
    for name in _SETTINGS:
        try:
            # With a default, Spark would not return its own.
            values[name] = spark.conf.get(name)
        except PySparkException:
            values[name] = None
    refuse_settings(values)


def refuse_settings(values: Mapping[str, str | None]) -> None:
    """Refuse settings of a session. ``values`` are by name; None where it is not set.

    Raises:
        ConfigurationError: One has another value than it must.
    """
    for name, (good, otherwise) in _SETTINGS.items():
        value = values[name]
        if value is None or value.upper() not in (each.upper() for each in good):
            raise ConfigurationError(
                f"{name} is {value or 'not set'}, and {otherwise}: put the line "
                f"`{name} {good[0]}` into your Spark configuration, as "
                "profiles/spark-defaults.conf has it"
            )


def check_limits(spark: SparkSession) -> None:
    """Refuse a driver or executors on which a damaged Avro record could end the JVM.

    Raises:
        ConfigurationError: One of Avro's limits is not set; the text names where.
    """
    system = Jvm(spark).packages.java.lang.System
    here = {name: system.getProperty(name) for name in _LIMITS}
    refuse_limits(here, "the driver", "spark.driver.extraJavaOptions")
    check_executors(spark)


def check_executors(spark: SparkSession) -> None:
    """What :func:`check_limits` does of the executors."""
    context = spark.sparkContext
    # There is no asking each executor: so many tasks hardly leave one out.
    tasks = min(context.defaultParallelism * _TASKS_PER_CORE, _MOST_TASKS)
    asked = [
        F.reflect(F.lit("java.lang.System"), F.lit("getProperty"), F.lit(name)) for name in _LIMITS
    ]
    for row in spark.range(0, tasks, 1, tasks).select(*asked).collect():
        there = dict(zip(_LIMITS, row, strict=True))
        refuse_limits(there, "an executor", "spark.executor.extraJavaOptions")


def refuse_limits(values: Mapping[str, str | None], where: str, setting: str) -> None:
    """Refuse system properties of a JVM.

    ``values`` are Avro's limits by name, None where one is not set; ``where`` is which JVM that
    is, ``setting`` the one of Spark that its properties come from.

    Raises:
        ConfigurationError: One is not set, or is no limit.
    """
    for name, usual in _LIMITS.items():
        text = values[name] or ""
        if not (text.isdecimal() and 0 < int(text) <= _HIGHEST_LIMIT):
            raise ConfigurationError(
                f"{name} is {text or 'not set'} on {where}, and one damaged record could end "
                f"it: add -D{name}={usual} to {setting}, as profiles/spark-defaults.conf has it"
            )
