"""The Spark session on the lake."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import jvm_watch
from spark_ingest.lake.jvm import CATALOG, Jvm, import_classes
from spark_ingest.lake.preflight import check_disk
from spark_ingest.lake.required_settings import tasks_everywhere

# Spark redacts options by name in lists, but not those of a streaming reader.
_REDACTION = "spark.sql.redaction.string.regex"
_SECRETS = (
    r'(?:password|clientSecret)="(?:\\.|[^"\\])*"'
    "|-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----"
)


def open_session() -> SparkSession:
    """Open a session with the lake of the Spark configuration.

    Raises:
        ConfigurationError: Spark cannot start, has no catalog ``lake``, or the disk is full.
    """
    try:
        spark = SparkSession.builder.appName("spark-ingest").getOrCreate()
    # The errors of pyspark for a JVM that exits at once have no common class.
    except Exception as error:
        raise ConfigurationError(
            f"Spark does not start ({' '.join(str(error).split())}): check spark.master and the "
            "JDK; in a checkout, `sandbox doctor` finds the cause"
        ) from error
    import_classes(spark)
    jvm_watch.watch(spark)
    silence_statement_log()
    hide_secrets(spark)
    if spark.conf.get(f"spark.sql.catalog.{CATALOG}", None) is None:
        raise ConfigurationError(
            f"Spark has no catalog {CATALOG!r}: run `make install`, or add the keys of "
            "profiles/spark-defaults.conf to your cluster's Spark configuration"
        )
    catalog_class = spark.conf.get(f"spark.sql.catalog.{CATALOG}")
    require_class(spark, catalog_class)
    require_on_executors(spark, str(catalog_class))
    if (warehouse := local_warehouse(spark)) is not None:
        check_disk(warehouse)
    return spark


def session_description(spark: SparkSession) -> str:
    """Version and master of Spark, and the catalog of the lake, as one line."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    # Iceberg's own names of the kind: `type`, or the class of `catalog-impl`.
    kind = spark.conf.get(f"{catalog}.type", None) or spark.conf.get(f"{catalog}.catalog-impl", "?")
    warehouse = spark.conf.get(f"{catalog}.warehouse", None)
    where = f", warehouse {warehouse}" if warehouse else ""
    return (
        f"Spark {spark.version}, master {spark.sparkContext.master};"
        f" catalog {CATALOG}: {kind}{where}"
    )


def local_warehouse(spark: SparkSession) -> Path | None:
    """The folder of the lake; None if it is not on a local disk, or the catalog chooses it."""
    warehouse = spark.conf.get(f"spark.sql.catalog.{CATALOG}.warehouse", None)
    return Jvm(spark).local_folder(warehouse) if warehouse else None


def require_class(spark: SparkSession, name: str | None) -> None:
    """Refuse a Spark without a required class; the message names missing JARs.

    Missing paths alone are no error: a cluster may list folders that only some machines have.

    Raises:
        ConfigurationError: The class is not on the class path.
    """
    if not name or Jvm(spark).loadable(name):
        return
    settings = spark.sparkContext.getConf()
    missing = [
        f" ({entry} of {key} does not exist)"
        for key in ("spark.driver.extraClassPath", "spark.jars")
        for entry in re.split("[:,]", settings.get(key) or "")
        if entry.startswith("/") and not Path(entry.removesuffix("/*")).exists()
    ]
    raise ConfigurationError(
        f"Spark has no class {name}{''.join(missing[:1])}: run `sandbox parts spark`, or add"
        " the JARs in sandbox/install/ivy.xml to your cluster's class path"
    )


def require_on_executors(spark: SparkSession, name: str) -> None:
    """Refuse a cluster whose executors lack a class; the message has the setting.

    Without it, tasks fail in the deserialization of a plan, with no word of a class.

    Raises:
        ConfigurationError: The class is not on the class path of an executor.
    """
    master = spark.sparkContext.master or ""
    # In a local master, tasks have the classes of the driver.
    if re.match(r"local($|\[)", master) or all_executors_have(spark, name):
        return
    raise ConfigurationError(
        f"the executors have no class {name}: add the JARs of spark.driver.extraClassPath to"
        " spark.executor.extraClassPath, with their folder on each worker, or to --jars"
    )


def all_executors_have(spark: SparkSession, name: str) -> bool:
    """Whether a class is on the class path of all executors, or of the driver of a local master."""
    loadable = F.reflect(
        F.lit("org.apache.spark.util.Utils"), F.lit("classIsLoadable"), F.lit(name)
    )
    return all(row[0] == "true" for row in tasks_everywhere(spark).select(loadable).collect())


def silence_statement_log() -> None:
    """Disable PySpark's log of failed statements, a page of JSON besides the exception."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def hide_secrets(spark: SparkSession) -> None:
    """Redact Kafka's passwords and private keys in plans: `explain`, UI and event log."""
    hidden = spark.conf.get(_REDACTION, "") or ""
    if _SECRETS not in hidden:
        spark.conf.set(_REDACTION, f"{hidden}|{_SECRETS}" if hidden else _SECRETS)
