"""Classes in Java, beside what Spark brings: compiled in the session, shipped to executors.

Spark's compiler compiles a source of this package once in a session, and executors fetch the
classes as they fetch any jar: there is nothing to build and nothing to install.
"""

from __future__ import annotations

import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_ingest.lake.jvm import Jvm

_PACKAGE = "millrace"
# By Spark application, which has executors of its own, and source.
_loaders: dict[tuple[str, Path], Any] = {}
# Streams ask at the same time, and Spark refuses another jar of a name that it has.
_loading = threading.Lock()


def made(spark: SparkSession, source: Path, *arguments: Any) -> Any:
    """A new object of the class that a source defines, which has the source's name.

    ``arguments`` are of the class's constructor: texts, numbers and Java's objects.
    """
    jvm = Jvm(spark).packages
    given = jvm.java.util.ArrayList()
    for argument in arguments:
        given.add(argument)
    loaded = _loader(spark, source).loadClass(f"{_PACKAGE}.{source.stem}")
    return loaded.getConstructors()[0].newInstance(given.toArray())


def _loader(spark: SparkSession, source: Path) -> Any:
    """What loads the compiled class in this JVM; its executors have it as a jar."""
    key = spark.sparkContext.applicationId, source
    with _loading:
        if key not in _loaders:
            _loaders[key] = _compiled(spark, source)
    return _loaders[key]


def _compiled(spark: SparkSession, source: Path) -> Any:
    """What loads the class, compiled now and shipped."""
    jvm = Jvm(spark)
    compiler = jvm.packages.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(
        jvm.packages.java.lang.Thread.currentThread().getContextClassLoader()
    )
    compiler.cook(source.read_text())
    # Spark removes it when its JVM ends: executors may come until then.
    folder = jvm.packages.org.apache.spark.util.Utils.createTempDir(tempfile.gettempdir(), _PACKAGE)
    jar = Path(str(folder)) / f"{_PACKAGE}.{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each, code in compiler.getBytecodes().items():
            archive.writestr(f"{each.replace('.', '/')}.class", bytes(code))
    jvm.add_jar(jar)
    return compiler.getClassLoader()
