"""The check that bytes are exactly one value of a schema, in Java, before they are decoded.

Spark's decoder gives a value for bytes that do not say it: a cut number, a boolean that is
neither, text that is not UTF-8. No function of Spark's own sees these bytes, so the check is
a class beside it, ``AvroCheck.java``. Spark's compiler compiles it once in a session, and
executors fetch it as they fetch any jar: there is nothing to install.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession

from spark_ingest.avro import AvroSchema
from spark_ingest.readings import Reading
from spark_ingest.session import JAVA_ERRORS, java_reason

# Begins a reason that is the place behind a whole value: the others are bytes left over.
LEFT_OVER = "+"
_SOURCE = Path(__file__).with_name("AvroCheck.java")
_CLASS = "millrace.AvroCheck"
# By Spark application: another one has executors of its own.
_loaders: dict[str, Any] = {}


def check(column: str, begin: int, writer: AvroSchema) -> Column:
    """Why bytes are not exactly one value of a schema; null where they are, or are null.

    Args:
        column: Name of the column that ends with the value.
        begin: How many bytes stand before it.
        writer: The schema, complete in itself.

    Returns:
        A text that names the field; or ``LEFT_OVER`` and the place behind the value, where
        that is whole and bytes are left over.
    """
    spark = SparkSession.active()
    jvm: Any = spark._jvm
    arguments = jvm.java.util.ArrayList()
    arguments.add(json.dumps(writer))
    arguments.add(begin)
    made = _loader(spark).loadClass(_CLASS).getConstructors()[0]
    spark_sql = jvm.org.apache.spark.sql
    checked = spark_sql.functions.udf(
        made.newInstance(arguments.toArray()), spark_sql.types.DataTypes.StringType
    )
    of = jvm.java.util.ArrayList()
    of.add(spark_sql.functions.col(column))
    named = checked.withName("avro_check")
    return Column(named.apply(jvm.PythonUtils.toSeq(of)))


def schema_problem(reading: Reading) -> str | None:
    """What Java's Avro or Spark has against a version's schemas; None where they take them."""
    jvm: Any = SparkSession.active()._jvm
    avro, spark_avro = jvm.org.apache.avro, jvm.org.apache.spark.sql.avro
    try:
        avro.Schema.Parser().parse(json.dumps(reading.writer))
        reader = avro.Schema.Parser().parse(json.dumps(reading.reader))
        spark_avro.SchemaConverters.toSqlType(reader, True, "", -1)
    except JAVA_ERRORS as error:
        return java_reason(error)
    return None


def _loader(spark: SparkSession) -> Any:
    """What loads the compiled class in this JVM; its executors have it as a jar."""
    application = spark.sparkContext.applicationId
    if application not in _loaders:
        jvm: Any = spark._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(
            jvm.java.lang.Thread.currentThread().getContextClassLoader()
        )
        compiler.cook(_SOURCE.read_text())
        # Spark removes it when its JVM ends: executors may come until then.
        folder = jvm.org.apache.spark.util.Utils.createTempDir(
            tempfile.gettempdir(), "millrace"
        )
        jar = Path(str(folder)) / "avro-check.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            for name, code in compiler.getBytecodes().items():
                archive.writestr(f"{name.replace('.', '/')}.class", bytes(code))
        spark.sparkContext._jsc.addJar(str(jar))
        _loaders[application] = compiler.getClassLoader()
    return _loaders[application]
