"""Checks in Java, beside what Spark brings: compiled in the session, shipped to executors.

Spark's compiler compiles a source of this package once in a session, and executors fetch the
classes as they fetch any jar: there is nothing to build and nothing to install.
"""

from __future__ import annotations

import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession

from spark_ingest.lake.jvm import Jvm

SOURCES = Path(__file__).parent
_PACKAGE = "millrace"
# By Spark application, which has executors of its own, and class.
_loaders: dict[tuple[str, str], Any] = {}
# Streams ask at the same time, and Spark refuses another jar of a name that it has.
_loading = threading.Lock()


def checked(name: str, column: str, *arguments: str | int) -> Column:
    """What a check says of a column: a reason, or null where nothing is wrong.

    ``name`` is its class, the name of its source too; ``arguments`` are of the class's
    constructor.
    """
    spark = SparkSession.active()
    session = Jvm(spark)
    jvm = session.packages
    given = jvm.java.util.ArrayList()
    for argument in arguments:
        given.add(argument)
    loader = _loader(spark, name)
    made = loader.loadClass(f"{_PACKAGE}.{name}").getConstructors()[0]
    spark_sql = jvm.org.apache.spark.sql
    function = session.java_udf(
        made.newInstance(given.toArray()), spark_sql.types.DataTypes.StringType
    )
    of = jvm.java.util.ArrayList()
    of.add(spark_sql.functions.col(column))
    return Column(function.withName(name).apply(jvm.PythonUtils.toSeq(of)))


def _loader(spark: SparkSession, name: str) -> Any:
    """What loads the compiled class in this JVM; its executors have it as a jar."""
    key = spark.sparkContext.applicationId, name
    with _loading:
        if key not in _loaders:
            _loaders[key] = _compiled(spark, name)
    return _loaders[key]


def _compiled(spark: SparkSession, name: str) -> Any:
    """What loads the class, compiled now and shipped."""
    jvm = Jvm(spark)
    compiler = jvm.packages.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(
        jvm.packages.java.lang.Thread.currentThread().getContextClassLoader()
    )
    compiler.cook((SOURCES / f"{name}.java").read_text())
    # Spark removes it when its JVM ends: executors may come until then.
    folder = jvm.packages.org.apache.spark.util.Utils.createTempDir(tempfile.gettempdir(), _PACKAGE)
    jar = Path(str(folder)) / f"{_PACKAGE}.{name}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each, code in compiler.getBytecodes().items():
            archive.writestr(f"{each.replace('.', '/')}.class", bytes(code))
    jvm.add_jar(jar)
    return compiler.getClassLoader()
