"""The session's JVM: what Spark and Iceberg offer to Java and not to Python.

All that is private in PySpark and Py4J is used here and nowhere else, so that a new version
of Spark has one file to be held against.
"""

from __future__ import annotations

import json
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from subprocess import Popen
from typing import Any

from py4j.java_gateway import java_import
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.internal import InternalFunction
from pyspark.sql.types import ArrayType, DataType, StructType

from spark_ingest.errors import MillraceError

CATALOG = "lake"
# What PySpark asks the JVM for with every column and every DataFrame.
_ASKED_FOR = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)

_PACKAGE = "millrace"
# By Spark application, which has executors of its own, and source.
_loaders: dict[tuple[str, tuple[Path, ...]], Any] = {}
# Streams ask at the same time, and Spark refuses another jar of a name that it has.
_loading = threading.RLock()


# An error of Java's arrives as one of Py4J, or as PySpark's own where that knows its class.
JAVA_ERRORS = (Py4JJavaError, PySparkException)


# What ends a stream and not the command: all else is a mistake in the program.
TROUBLE = (MillraceError, *JAVA_ERRORS, OSError)


class Jvm:
    """The session's JVM: what Iceberg and Spark offer to Java and not to Python."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.packages: Any = spark._jvm
        """Java's packages and classes by name."""
        self._session: Any = spark._jsparkSession

    @cached_property
    def _spark3(self) -> Any:
        # Once, and by its whole name: of each part of a dotted name Py4J asks all jars.
        return getattr(self.packages, "org.apache.iceberg.spark.Spark3Util")

    def iceberg_table(self, table: str) -> Any:
        """Iceberg's ``org.apache.iceberg.Table``, freshly loaded from the catalog."""
        return self._spark3.loadIcebergTable(self._session, f"{CATALOG}.{table}")

    def has_files(self, table: str, column: str, value: str) -> bool:
        """Whether files of a table may have rows with some value, by metadata and with no job."""
        made = getattr(self.packages, "org.apache.iceberg.expressions.Expressions")
        scan = self.iceberg_table(table).newScan()
        files = scan.filter(made.equal(column, value)).planFiles()
        try:
            return bool(files.iterator().hasNext())
        finally:
            files.close()

    def loadable(self, name: str) -> bool:
        """Whether a class is on the class path."""
        # By its whole name: of each part of a dotted name Py4J asks all jars.
        utils = getattr(self.packages, "org.apache.spark.util.Utils")
        return bool(utils.classIsLoadable(name))

    def java_udf(self, function: Any, returns: Any) -> Any:
        """Spark's user-defined function of a ``UDF1`` of Java.

        Not ``functions.udf(function, returns)``: an overload takes any object, as a function of
        Scala, and of the two Py4J calls the one that the JVM happens to list first. ``returns``
        is the ``DataType`` of what it returns.
        """
        find = self.packages.java.lang.Class.forName
        types = self._array(
            self.packages.java.lang.Class,
            find("org.apache.spark.sql.api.java.UDF1"),
            find("org.apache.spark.sql.types.DataType"),
        )
        given = self._array(self.packages.java.lang.Object, function, returns)
        method = find("org.apache.spark.sql.functions").getMethod("udf", types)
        return method.invoke(None, given)

    def _array(self, kind: Any, *items: Any) -> Any:
        gateway: Any = self._spark.sparkContext._gateway
        made = gateway.new_array(kind, len(items))
        for at, item in enumerate(items):
            made[at] = item
        return made

    def add_jar(self, jar: Path) -> None:
        """Give a jar to the executors."""
        self._spark.sparkContext._jsc.addJar(str(jar))

    def most_result_bytes(self) -> int:
        """What the tasks of a job may bring to the driver; 0 for no limit."""
        conf = self._session.sparkContext().conf()
        text = conf.get("spark.driver.maxResultSize", "1g")
        sizes = self.packages.org.apache.spark.network.util.JavaUtils
        return int(sizes.byteStringAsBytes(text))

    def metadata_bytes(self, table: str) -> int | None:
        """Bytes in a table's metadata folder; None where Hadoop does not know the store."""
        operations = self.iceberg_table(table).operations()
        path = self.packages.org.apache.hadoop.fs.Path(operations.current().metadataFileLocation())
        settings = self._session.sessionState().newHadoopConf()
        try:
            files = path.getFileSystem(settings)
            return int(files.getContentSummary(path.getParent()).getLength())
        except JAVA_ERRORS:
            return None

    def iceberg_schema(self, struct: StructType) -> Any:
        """A Spark struct as an ``org.apache.iceberg.Schema``."""
        convert = self.packages.org.apache.iceberg.spark.SparkSchemaUtil.convert
        return convert(self._data_type(struct))

    def schema_json(self, schema: Any) -> str:
        """An ``org.apache.iceberg.Schema`` as JSON, by the table specification's appendix C."""
        parser = getattr(self.packages, "org.apache.iceberg.SchemaParser")
        return str(parser.toJson(schema))

    def struct_of(self, schema: Any) -> StructType:
        """An ``org.apache.iceberg.Schema`` as a Spark struct."""
        convert = getattr(self.packages, "org.apache.iceberg.spark.SparkSchemaUtil").convert
        return StructType.fromJson(json.loads(convert(schema).json()))

    def serializable(self, iceberg: Any) -> Any:
        """A copy of Iceberg's table that tasks can have."""
        made = "org.apache.iceberg.spark.source.SerializableTableWithSize"
        return getattr(self.packages, made).copyOf(iceberg)

    def mapped(self, rows: DataFrame, function: Any, name: str) -> list[Any]:
        """What a ``MapPartitionsFunction`` makes of a DataFrame's partitions: Java's objects.

        ``name`` is their class, which is serializable.
        """
        java: Any = rows._jdf
        kind = self.packages.java.lang.Class.forName(name)
        encoder = self.packages.org.apache.spark.sql.Encoders.javaSerialization(kind)
        return list(java.mapPartitions(function, encoder).collectAsList())

    def dataframe(self, rows: Any, schema: StructType) -> DataFrame:
        """A DataFrame of a Scala sequence of rows, which never pass through Python."""
        java_rows = self.packages.scala.jdk.javaapi.CollectionConverters.asJava(rows)
        java = self._session.createDataFrame(java_rows, self._data_type(schema))
        return DataFrame(java, self._spark)

    def parallelized(self, elements: list[Any]) -> Any:
        """A ``JavaRDD`` of some elements, lists of numbers: each in a partition of its own."""
        return self._spark.sparkContext._jsc.parallelize(elements, len(elements))

    def data_frame_of(self, rows: Any, schema: StructType) -> DataFrame:
        """A DataFrame of a ``JavaRDD`` of Spark's own rows."""
        made = self._session.internalCreateDataFrame(rows.rdd(), self._data_type(schema), False)
        return DataFrame(made, self._spark)

    def rows_of_arrow(self, streams: Sequence[bytes]) -> Any:
        """The rows of some Arrow IPC streams, each of one batch, as a Java list of ``Row``."""
        rows = self._list()
        if not streams:
            return rows
        made = getattr(self.packages, "org.apache.spark.sql.execution.arrow.ArrowConverters$")
        converters = getattr(self.packages, "scala.jdk.javaapi.CollectionConverters")
        given = self._list()
        for stream in streams:
            given.add(stream)
        # Without a task that ends them, they end behind the last row.
        iterator = converters.asScala(given).iterator()
        found = getattr(made, "MODULE$").fromBatchWithSchemaIterator(iterator, None)
        as_row, each = self._as_row(found._2()), found._1()
        while each.hasNext():
            rows.add(as_row.apply(each.next()))
        return rows

    def row_of(self, internal: Any, schema: StructType) -> Any:
        """One of Spark's own rows as a ``Row``."""
        return self._as_row(self._data_type(schema)).apply(internal)

    def _as_row(self, kind: Any) -> Any:
        name = "org.apache.spark.sql.catalyst.CatalystTypeConverters"
        return getattr(self.packages, name).createToScalaConverter(kind)

    def _list(self) -> Any:
        # By its whole name: of each part of a dotted name Py4J asks all jars.
        return getattr(self.packages, "java.util.ArrayList")()

    def arrow_schema(self, columns: StructType) -> str:
        """Arrow's schema of some columns, as its JSON, as Spark hands them to Python."""
        utils = getattr(self.packages, "org.apache.spark.sql.util.ArrowUtils")
        made = utils.toArrowSchema(self._data_type(columns), "UTC", True, False)
        return str(made.toJson())

    def first_row(self, rows: DataFrame) -> Any:
        """The first row of a DataFrame, as the JVM's own."""
        java: Any = rows._jdf
        return java.head()

    def _data_type(self, kind: StructType) -> Any:
        return self._session.parseDataType(kind.json())


def java_object(spark: SparkSession, sources: Sequence[Path], *arguments: Any) -> Any:
    """A new object of the class in Java that the last of some sources defines.

    Each source has its class's name, and may use the classes before it. Spark's compiler compiles
    a source of this package once in a session, and executors fetch the classes as they fetch any
    jar: there is nothing to build and nothing to install. ``arguments`` are of the class's
    constructor: texts, numbers and Java's objects.
    """
    jvm = Jvm(spark).packages
    given = getattr(jvm, "java.util.ArrayList")()
    for argument in arguments:
        given.add(argument)
    loaded = _loader(spark, tuple(sources)).loadClass(f"{_PACKAGE}.{sources[-1].stem}")
    return loaded.getConstructors()[0].newInstance(given.toArray())


def _loader(spark: SparkSession, sources: tuple[Path, ...]) -> Any:
    """What loads the classes of some sources in this JVM; its executors have them as jars."""
    key = spark.sparkContext.applicationId, sources
    with _loading:
        if key not in _loaders:
            before = sources[:-1]
            thread = Jvm(spark).packages.java.lang.Thread.currentThread()
            parent = _loader(spark, before) if before else thread.getContextClassLoader()
            _loaders[key] = _compiled(spark, sources[-1], parent)
        return _loaders[key]


def _compiled(spark: SparkSession, source: Path, parent: Any) -> Any:
    """What loads the class, compiled now and shipped, and all that ``parent`` loads."""
    jvm = Jvm(spark)
    compiler = jvm.packages.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(source.read_text())
    # Spark removes it when its JVM ends: executors may come until then.
    folder = jvm.packages.org.apache.spark.util.Utils.createTempDir(tempfile.gettempdir(), _PACKAGE)
    jar = Path(str(folder)) / f"{_PACKAGE}.{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each, code in compiler.getBytecodes().items():
            archive.writestr(f"{each.replace('.', '/')}.class", bytes(code))
    jvm.add_jar(jar)
    return compiler.getClassLoader()


def literal_rows(
    spark: SparkSession, rows: Sequence[Sequence[Any]], schema: StructType
) -> DataFrame:
    """A DataFrame of some rows, which Spark reads from the plan itself, in one partition.

    ``SparkSession.createDataFrame`` has a Python worker hand each row back to Java: that
    takes a core a tenth of a second, and a second the first time. ``rows`` have values in the
    order of the columns: None, numbers, texts, booleans, times with a zone, and lists or tuples
    of such for arrays and structs.
    """
    text = json.dumps([_as_json(row, schema) for row in rows])
    kind = f"array<{schema.simpleString()}>"
    # A parameter of a statement does not get through the parser of Iceberg's extensions.
    read = F.from_json(F.lit(text), kind, {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.inline(read))


def _as_json(value: Any, kind: DataType) -> Any:
    """A value as Spark's JSON reader takes it for a type."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if value is not None and isinstance(kind, StructType):
        return {
            field.name: _as_json(part, field.dataType)
            for field, part in zip(kind.fields, value, strict=True)
        }
    if value is not None and isinstance(kind, ArrayType):
        return [_as_json(part, kind.elementType) for part in value]
    return value


def java_reason(error: Exception) -> str:
    """What a Java error says, as one line."""
    if isinstance(error, PythonException):
        # A worker's traceback says in its last line what it was.
        return str(error).strip().splitlines()[-1]
    java = getattr(error, "java_exception", None)
    if java is None:
        return (str(error).splitlines() or [type(error).__name__])[0]
    # A NullPointerException has no message, others an empty one.
    said = (java.getMessage() or "").splitlines()
    return str(said[0] if said else java.toString().splitlines()[0])


def java_trace(error: Exception) -> str:
    """All that a Java error says, with what caused it."""
    said: list[str] = []
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        said.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(said) or str(error)


def reason_text(error: Exception) -> str:
    """What an error says, as one line."""
    return java_reason(error) if isinstance(error, JAVA_ERRORS) else str(error)


def batch_ends(checkpoint: Path, batch_id: int, topic: str) -> dict[int, int]:
    """Where a micro-batch of a one-topic query ends, by partition.

    Spark fixes a batch's offsets and writes them to the checkpoint's ``offsets`` folder before
    it calls the batch's function: a version line, a line of metadata, then a line of JSON for
    each source.
    """
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    ends: dict[str, int] = json.loads(lines[2])[topic]
    return {int(partition): offset for partition, offset in ends.items()}


def import_classes(spark: SparkSession) -> None:
    """Import for Py4J the classes that PySpark asks for by their bare names.

    It would look for each in package after package, each time through all jars.
    """
    for name in _ASKED_FOR:
        java_import(spark._jvm, name)


def process(spark: SparkSession) -> Popen[bytes] | None:
    """The JVM that this process started for the session; None where somebody else did."""
    gateway: Any = getattr(spark.sparkContext, "_gateway", None)
    return getattr(gateway, "proc", None)


def task_listener(spark: SparkSession) -> Any:
    """PySpark's server for the accumulators of the JVM's tasks; None where there is none."""
    return getattr(spark.sparkContext, "_accumulatorServer", None)


def observed_row(observation: Observation) -> Any:
    """What was observed, as the JVM's own row: rows within it need not pass through Python."""
    observed: Any = observation._jo
    return observed.getRow()


def smallest(column: Column, most: int) -> Column:
    """The smallest values of a column, at most so many; nulls are left out."""
    return InternalFunction.collect_top_k(column, most, reverse=False)
