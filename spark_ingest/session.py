"""The Spark session and, through its JVM, Iceberg's own API."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.java_gateway import java_import
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_ingest import jvm_watch
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.preflight import check_disk

CATALOG = "lake"
# Spark hides options by name where it lists them, yet writes a streaming reader's in full.
_REDACTION = "spark.sql.redaction.string.regex"
_SECRETS = (
    r'(?:password|clientSecret)="(?:\\.|[^"\\])*"'
    "|-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----"
)
# What PySpark asks the JVM for with every column and every DataFrame.
_ASKED_FOR = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)
# An error of Java's arrives as one of Py4J, or as PySpark's own where that knows its class.
JAVA_ERRORS = (Py4JJavaError, PySparkException)


# What ends a stream and not the command: all else is a mistake in the program.
TROUBLE = (MillraceError, *JAVA_ERRORS, OSError)


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
    # Py4J looks for a bare name in package after package, each time through all jars.
    for name in _ASKED_FOR:
        java_import(spark._jvm, name)
    jvm_watch.watch(spark)
    silence_statement_log()
    hide_secrets(spark)
    warehouse = spark.conf.get(f"spark.sql.catalog.{CATALOG}.warehouse", None)
    if (
        spark.conf.get(f"spark.sql.catalog.{CATALOG}", None) is None
        or warehouse is None
    ):
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
    # By its whole name: of each part of a dotted name Py4J asks all jars.
    utils: Any = getattr(spark._jvm, "org.apache.spark.util.Utils")
    if not name or utils.classIsLoadable(name):
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
        " the JARs that sandbox/ivy.xml lists to your cluster's class path"
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


class Jvm:
    """The session's JVM: what Iceberg and Spark offer to Java and not to Python."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._session: Any = spark._jsparkSession

    @cached_property
    def _spark3(self) -> Any:
        # Once, and by its whole name: of each part of a dotted name Py4J asks all jars.
        return getattr(self._jvm, "org.apache.iceberg.spark.Spark3Util")

    def iceberg_table(self, table: str) -> Any:
        """Iceberg's ``org.apache.iceberg.Table``, freshly loaded from the catalog."""
        return self._spark3.loadIcebergTable(self._session, f"{CATALOG}.{table}")

    def most_result_bytes(self) -> int:
        """What the tasks of a job may bring to the driver; 0 for no limit."""
        conf = self._session.sparkContext().conf()
        text = conf.get("spark.driver.maxResultSize", "1g")
        sizes = self._jvm.org.apache.spark.network.util.JavaUtils
        return int(sizes.byteStringAsBytes(text))

    def metadata_bytes(self, table: str) -> int | None:
        """Bytes in a table's metadata folder; None where Hadoop does not know the store."""
        operations = self.iceberg_table(table).operations()
        path = self._jvm.org.apache.hadoop.fs.Path(
            operations.current().metadataFileLocation()
        )
        settings = self._session.sessionState().newHadoopConf()
        try:
            files = path.getFileSystem(settings)
            return int(files.getContentSummary(path.getParent()).getLength())
        except JAVA_ERRORS:
            return None

    def iceberg_schema(self, struct: StructType) -> Any:
        """A Spark struct as an ``org.apache.iceberg.Schema``."""
        java = self._session.parseDataType(struct.json())
        return self._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(java)

    def dataframe(self, rows: Any, schema: StructType) -> DataFrame:
        """A DataFrame of a Scala sequence of rows, which never pass through Python."""
        java_rows = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(rows)
        java = self._session.createDataFrame(
            java_rows, self._session.parseDataType(schema.json())
        )
        return DataFrame(java, self._spark)


def java_reason(error: Exception) -> str:
    """What a Java error says, as one line."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return (str(error).splitlines() or [type(error).__name__])[0]
    # A NullPointerException has no message, others an empty one.
    said = (java.getMessage() or "").splitlines()
    return str(said[0] if said else java.toString().splitlines()[0])


def reason_text(error: Exception) -> str:
    """What an error says, as one line."""
    return java_reason(error) if isinstance(error, JAVA_ERRORS) else str(error)
