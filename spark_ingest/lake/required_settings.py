"""Spark settings that exactly-once ingestion depends on, checked before anything is written.

With other values nothing fails, but rows would be duplicated, changed, or missed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.jvm import CATALOG, Jvm

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00")
# Accepted values, the recommended one first, and the effect of any other value.
_SETTINGS: dict[str, tuple[tuple[str, ...], str]] = {
    "spark.sql.session.timeZone": (_UTC, "timestamps in SQL would have another meaning"),
    f"spark.sql.catalog.{CATALOG}.cache-enabled": (
        ("false",),
        "commits of other writers would be invisible",
    ),
    "spark.sql.ansi.enabled": (("true",), "an overflow would change the value"),
    "spark.sql.storeAssignmentPolicy": (
        ("ANSI", "STRICT"),
        "an overflow would change the value",
    ),
    "spark.sql.avro.datetimeRebaseModeInRead": (
        ("CORRECTED",),
        "dates before 1582 would be changed",
    ),
    "spark.sql.legacy.timeParserPolicy": (
        ("CORRECTED", "EXCEPTION"),
        "timestamps in JSON would be misread",
    ),
}
_LIMITS = {
    "org.apache.avro.limits.string.maxLength": 16777216,
    "org.apache.avro.limits.bytes.maxLength": 16777216,
    "org.apache.avro.limits.collectionItems.maxLength": 1000000,
}
# Beyond it, a record of a few bytes that declares such a length crashes an executor.
_HIGHEST_LIMIT = 2**30
_TASKS_PER_CORE = 2
_MOST_TASKS = 1000


def check_settings(spark: SparkSession) -> None:
    """Refuse a session in which rows could be wrong.

    Raises:
        ConfigurationError: A setting has a wrong value; the message has the line to add.
    """
    values: dict[str, str | None] = {}
    for name in _SETTINGS:
        try:
            # Without an argument for the default, Spark returns its own default.
            values[name] = spark.conf.get(name)
        except PySparkException:
            values[name] = None
    refuse_settings(values)


def refuse_settings(values: Mapping[str, str | None]) -> None:
    """Refuse wrong settings of a session. ``values`` are by name; None for an unset one.

    Raises:
        ConfigurationError: One has a wrong value.
    """
    for name, (good, otherwise) in _SETTINGS.items():
        value = values[name]
        if value is None or value.upper() not in (each.upper() for each in good):
            raise ConfigurationError(
                f"{name} is {value or 'not set'}, and {otherwise}: add the line "
                f"`{name} {good[0]}` to your Spark configuration, as in "
                "profiles/spark-defaults.conf"
            )


def check_limits(spark: SparkSession) -> None:
    """Refuse a driver or executors whose JVM a corrupt Avro record could crash.

    Raises:
        ConfigurationError: One of Avro's limits is not set; the message says where.
    """
    system = Jvm(spark).packages.java.lang.System
    here = {name: system.getProperty(name) for name in _LIMITS}
    refuse_limits(here, "the driver", "spark.driver.extraJavaOptions")
    check_executors(spark)


def check_executors(spark: SparkSession) -> None:
    """The part of :func:`check_limits` for the executors."""
    properties = [
        F.reflect(F.lit("java.lang.System"), F.lit("getProperty"), F.lit(name)) for name in _LIMITS
    ]
    for row in tasks_everywhere(spark).select(*properties).collect():
        values = dict(zip(_LIMITS, row, strict=True))
        refuse_limits(values, "an executor", "spark.executor.extraJavaOptions")


def tasks_everywhere(spark: SparkSession) -> DataFrame:
    """A row per task, with so many tasks that most likely each executor gets one.

    Spark cannot address an executor.
    """
    tasks = min(spark.sparkContext.defaultParallelism * _TASKS_PER_CORE, _MOST_TASKS)
    return spark.range(0, tasks, 1, tasks)


def refuse_limits(values: Mapping[str, str | None], where: str, setting: str) -> None:
    """Refuse missing limits in the system properties of a JVM.

    ``values`` are Avro's limits by name, None for an unset one; ``where`` names the JVM,
    ``setting`` the Spark setting for its properties.

    Raises:
        ConfigurationError: One is not set, or not an effective limit.
    """
    for name, usual in _LIMITS.items():
        text = values[name] or ""
        if not (text.isdecimal() and 0 < int(text) <= _HIGHEST_LIMIT):
            raise ConfigurationError(
                f"{name} is {text or 'not set'} on {where}, and one corrupt record could crash "
                f"it: add -D{name}={usual} to {setting}, as in profiles/spark-defaults.conf"
            )
