"""The Spark session on the lake."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import jvm_watch
from spark_ingest.lake.jvm import CATALOG, Jvm, import_classes
from spark_ingest.lake.preflight import check_disk

# Spark hides options by name where it lists them, yet writes a streaming reader's in full.
_REDACTION = "spark.sql.redaction.string.regex"
_SECRETS = (
    r'(?:password|clientSecret)="(?:\\.|[^"\\])*"'
    "|-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----"
)


def open_session() -> SparkSession:
    """A session on the lake that the Spark configuration names.

    Raises:
        ConfigurationError: Spark cannot start, knows no catalog ``lake``, or has no room to
            write to it.
    """
    try:
        spark = SparkSession.builder.appName("spark-ingest").getOrCreate()
    # What pyspark raises when its JVM dies at once has no common class.
    except Exception as error:
        raise ConfigurationError(
            f"Spark does not start ({' '.join(str(error).split())}): run `sandbox doctor`"
        ) from error
    import_classes(spark)
    jvm_watch.watch(spark)
    silence_statement_log()
    hide_secrets(spark)
    warehouse = spark.conf.get(f"spark.sql.catalog.{CATALOG}.warehouse", None)
    if spark.conf.get(f"spark.sql.catalog.{CATALOG}", None) is None or warehouse is None:
        raise ConfigurationError(
            f"Spark knows no catalog {CATALOG!r}: run `make install`, or put the keys of "
            "profiles/spark-defaults.conf into your cluster's Spark configuration"
        )
    require_class(spark, spark.conf.get(f"spark.sql.catalog.{CATALOG}"))
    # A warehouse of an object store has a scheme, and room.
    if Path(warehouse).is_absolute():
        check_disk(Path(warehouse))
    return spark


def require_class(spark: SparkSession, name: str | None) -> None:
    """Refuse a Spark without a class that all work needs, naming the JARs that are not there.

    What the settings name and does not exist is no mistake by itself: a cluster may list
    folders that only some of its machines have.

    Raises:
        ConfigurationError: The class is on no class path.
    """
    if not name or Jvm(spark).loadable(name):
        return
    settings = spark.sparkContext.getConf()
    gone = [
        f" ({entry} of {key} is not there)"
        for key in ("spark.driver.extraClassPath", "spark.jars")
        for entry in re.split("[:,]", settings.get(key) or "")
        if entry.startswith("/") and not Path(entry.removesuffix("/*")).exists()
    ]
    raise ConfigurationError(
        f"Spark has no class {name}{''.join(gone[:1])}: run `sandbox parts spark`, or bring"
        " the JARs that sandbox/install/ivy.xml lists to your cluster's class path"
    )


def silence_statement_log() -> None:
    """Keep PySpark from printing each failed statement as a page of JSON besides raising it."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def hide_secrets(spark: SparkSession) -> None:
    """Keep Kafka's passwords and private keys out of plans: of `explain`, UI and event log."""
    hidden = spark.conf.get(_REDACTION, "") or ""
    if _SECRETS not in hidden:
        spark.conf.set(_REDACTION, f"{hidden}|{_SECRETS}" if hidden else _SECRETS)
