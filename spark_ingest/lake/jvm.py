"""Access to the session's JVM: APIs of Spark and Iceberg that Python lacks.

Private APIs of PySpark and Py4J are used only here, so that an upgrade of Spark affects one file.
"""

from __future__ import annotations

import json
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from subprocess import Popen
from typing import Any

from py4j.java_gateway import java_import
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.errors import PySparkException, PythonException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.internal import InternalFunction
from pyspark.sql.types import ArrayType, DataType, StructType

from spark_ingest.errors import MillraceError

CATALOG = "lake"
_OBSERVED = "observed"
# Classes that PySpark looks up for every column and every DataFrame.
_ASKED_FOR = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)

_PACKAGE = "millrace"
# Class loaders by Spark application, which has its own executors, and sources.
_loaders: dict[tuple[str, tuple[Path, ...]], Any] = {}
# Streams load classes concurrently, and Spark rejects a second JAR of the same name.
_loading = threading.RLock()

# The cause of an error if a Python worker failed. PySpark converts it for DataFrames only.
_WORKER_ERROR = "org.apache.spark.api.python.PythonException"

# A Java exception arrives as an error of Py4J, or of PySpark if that converts its class.
JAVA_ERRORS = (Py4JJavaError, PySparkException)


# Errors that stop a stream but not the command; all others are bugs.
TROUBLE = (MillraceError, *JAVA_ERRORS, OSError)


class Jvm:
    """The session's JVM, with APIs of Spark and Iceberg that Python lacks."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.packages: Any = spark._jvm
        """Java's packages and classes by name."""
        self._session: Any = spark._jsparkSession

    @cached_property
    def _spark3(self) -> Any:
        # Once, and by its full name: Py4J searches all JARs for each part of a dotted name.
        return getattr(self.packages, "org.apache.iceberg.spark.Spark3Util")

    def iceberg_table(self, table: str) -> Any:
        """Iceberg's ``org.apache.iceberg.Table``, freshly loaded from the catalog."""
        return self._spark3.loadIcebergTable(self._session, f"{CATALOG}.{table}")

    def has_files(self, table: str, column: str, value: str) -> bool:
        """Whether data files of a table may have a value, from metadata and without a job."""
        expressions = getattr(self.packages, "org.apache.iceberg.expressions.Expressions")
        scan = self.iceberg_table(table).newScan()
        files = scan.filter(expressions.equal(column, value)).planFiles()
        try:
            return bool(files.iterator().hasNext())
        finally:
            files.close()

    def loadable(self, name: str) -> bool:
        """Whether a class is on the class path."""
        # By its full name: Py4J searches all JARs for each part of a dotted name.
        utils = getattr(self.packages, "org.apache.spark.util.Utils")
        return bool(utils.classIsLoadable(name))

    def java_udf(self, function: Any, returns: Any) -> Any:
        """A user-defined function of Spark from a Java ``UDF1``.

        Not with ``functions.udf(function, returns)``: it has an overload for any object, as a
        Scala function, and Py4J calls the one that the JVM happens to list first. ``returns`` is
        the ``DataType`` of the result.
        """
        find = self.packages.java.lang.Class.forName
        types = self._array(
            self.packages.java.lang.Class,
            find("org.apache.spark.sql.api.java.UDF1"),
            find("org.apache.spark.sql.types.DataType"),
        )
        arguments = self._array(self.packages.java.lang.Object, function, returns)
        method = find("org.apache.spark.sql.functions").getMethod("udf", types)
        return method.invoke(None, arguments)

    def _array(self, kind: Any, *items: Any) -> Any:
        gateway: Any = self._spark.sparkContext._gateway
        array = gateway.new_array(kind, len(items))
        for at, item in enumerate(items):
            array[at] = item
        return array

    def add_jar(self, jar: Path) -> None:
        """Add a JAR to the executors."""
        self._spark.sparkContext._jsc.addJar(str(jar))

    def most_result_bytes(self) -> int:
        """The limit of the results of all tasks of a job, in bytes; 0 for no limit."""
        conf = self._session.sparkContext().conf()
        text = conf.get("spark.driver.maxResultSize", "1g")
        sizes = self.packages.org.apache.spark.network.util.JavaUtils
        return int(sizes.byteStringAsBytes(text))

    def metadata_bytes(self, table: str) -> int | None:
        """Bytes in a table's metadata folder; None if Hadoop does not support the storage."""
        location = self.iceberg_table(table).operations().current().metadataFileLocation()
        if not self.has_hadoop_files(location):
            return None
        path = self._hadoop_path(location)
        files = path.getFileSystem(self._hadoop_settings())
        return int(files.getContentSummary(path.getParent()).getLength())

    def local_folder(self, location: str) -> Path | None:
        """A location as a folder of this machine's disk; None if it is on another file system.

        Without a scheme it is on Hadoop's default file system, which may be HDFS.
        """
        uri = self._hadoop_path(location).toUri()
        default = getattr(self.packages, "org.apache.hadoop.fs.FileSystem").getDefaultUri
        scheme = uri.getScheme() or default(self._hadoop_settings()).getScheme()
        return Path(uri.getPath()) if scheme == "file" else None

    def has_hadoop_files(self, location: str) -> bool:
        """Whether Hadoop has a file system for a location."""
        try:
            self._hadoop_path(location).getFileSystem(self._hadoop_settings())
        except JAVA_ERRORS:
            return False
        return True

    def _hadoop_path(self, location: str) -> Any:
        return getattr(self.packages, "org.apache.hadoop.fs.Path")(location)

    def _hadoop_settings(self) -> Any:
        return self._session.sessionState().newHadoopConf()

    def iceberg_schema(self, struct: StructType) -> Any:
        """A Spark struct as an ``org.apache.iceberg.Schema``."""
        convert = self.packages.org.apache.iceberg.spark.SparkSchemaUtil.convert
        return convert(self._data_type(struct))

    def schema_json(self, schema: Any) -> str:
        """An ``org.apache.iceberg.Schema`` as JSON (Iceberg table spec, appendix C)."""
        parser = getattr(self.packages, "org.apache.iceberg.SchemaParser")
        return str(parser.toJson(schema))

    def struct_of(self, schema: Any) -> StructType:
        """An ``org.apache.iceberg.Schema`` as a Spark struct."""
        convert = getattr(self.packages, "org.apache.iceberg.spark.SparkSchemaUtil").convert
        return StructType.fromJson(json.loads(convert(schema).json()))

    def serializable(self, iceberg: Any) -> Any:
        """A serializable copy of an Iceberg table, for tasks."""
        name = "org.apache.iceberg.spark.source.SerializableTableWithSize"
        return getattr(self.packages, name).copyOf(iceberg)

    def in_workers(self, arrays: Any, function: Callable[[Any], Any]) -> Any:
        """Apply a function to byte arrays in Python workers, which receive them as they are.

        ``arrays`` and the result are a ``JavaRDD`` of byte arrays; ``function`` takes and returns
        an iterator of ``bytes`` for each partition.
        """
        unserialized = NoOpSerializer()
        rdd: Any = RDD(arrays, self._spark.sparkContext, unserialized).mapPartitions(function)
        return rdd._reserialize(unserialized)._jrdd

    def accumulator(self) -> Any:
        """A ``CollectionAccumulator``: each successful task of a job's last stage adds once."""
        return self._session.sparkContext().collectionAccumulator()

    def dataframe(self, rows: Any, schema: StructType) -> DataFrame:
        """A DataFrame of a Scala sequence of rows, which do not pass through Python."""
        java_rows = self.packages.scala.jdk.javaapi.CollectionConverters.asJava(rows)
        java = self._session.createDataFrame(java_rows, self._data_type(schema))
        return DataFrame(java, self._spark)

    def parallelized(self, elements: list[Any]) -> Any:
        """A ``JavaRDD`` of lists of numbers, with one partition per list."""
        return self._spark.sparkContext._jsc.parallelize(elements, len(elements))

    def byte_arrays(self, values: Iterable[bytes]) -> Any:
        """A Java list of byte arrays."""
        # By its full name: Py4J searches all JARs for each part of a dotted name.
        found = getattr(self.packages, "java.util.ArrayList")()
        for value in values:
            found.add(value)
        return found

    def row_of(self, internal: Any, schema: StructType) -> Any:
        """An ``InternalRow`` as a ``Row``."""
        name = "org.apache.spark.sql.catalyst.CatalystTypeConverters"
        convert = getattr(self.packages, name).createToScalaConverter(self._data_type(schema))
        return convert.apply(internal)

    def arrow_schema(self, columns: StructType) -> str:
        """The Arrow schema of columns, as JSON, with the types that Spark passes to Python."""
        utils = getattr(self.packages, "org.apache.spark.sql.util.ArrowUtils")
        schema = utils.toArrowSchema(self._data_type(columns), "UTC", True, False)
        return str(schema.toJson())

    def first_row(self, rows: DataFrame) -> Any:
        """The first row of a DataFrame, as a Java ``Row``."""
        java: Any = rows._jdf
        return java.head()

    def _data_type(self, kind: StructType) -> Any:
        return self._session.parseDataType(kind.json())


def _class_loader(packages: Any) -> Any:
    """The class loader of this thread in the driver, which has the classes of ``spark.jars``."""
    return packages.java.lang.Thread.currentThread().getContextClassLoader()


def java_object(spark: SparkSession, sources: Sequence[Path], *arguments: Any) -> Any:
    """A new instance of the Java class in the last of some source files.

    Each file is named as its class, and may use the classes before it. Spark's compiler (Janino)
    compiles a file once per session, and executors fetch the classes as a JAR, so that no build
    is necessary. ``arguments`` are those of the constructor: strings, numbers and Java objects.
    """
    jvm = Jvm(spark).packages
    values = getattr(jvm, "java.util.ArrayList")()
    for argument in arguments:
        values.add(argument)
    loaded = _loader(spark, tuple(sources)).loadClass(f"{_PACKAGE}.{sources[-1].stem}")
    return loaded.getConstructors()[0].newInstance(values.toArray())


def _loader(spark: SparkSession, sources: tuple[Path, ...]) -> Any:
    """The class loader of some sources in the driver; executors have the classes as JARs."""
    key = spark.sparkContext.applicationId, sources
    with _loading:
        if key not in _loaders:
            before = sources[:-1]
            loaded = _class_loader(Jvm(spark).packages)
            parent = _loader(spark, before) if before else loaded
            _loaders[key] = _compiled(spark, sources[-1], parent)
        return _loaders[key]


def _compiled(spark: SparkSession, source: Path, parent: Any) -> Any:
    """Compile a source and add it to the executors; a class loader with this parent."""
    jvm = Jvm(spark)
    compiler = jvm.packages.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(source.read_text())
    # Spark deletes it at exit: executors may fetch it until then.
    folder = jvm.packages.org.apache.spark.util.Utils.createTempDir(tempfile.gettempdir(), _PACKAGE)
    jar = Path(str(folder)) / f"{_PACKAGE}.{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each, code in compiler.getBytecodes().items():
            archive.writestr(f"{each.replace('.', '/')}.class", bytes(code))
    jvm.add_jar(jar)
    return compiler.getClassLoader()


def drained(iterator: Any) -> list[Any]:
    """The elements of a Java iterator.

    Not by Python's own iteration: it ends with Java's exception, and PySpark compares each with a
    dozen classes that the JVM loads by name.
    """
    found = []
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def literal_rows(
    spark: SparkSession, rows: Sequence[Sequence[Any]], schema: StructType
) -> DataFrame:
    """A DataFrame of literal rows that are part of the plan, with one partition.

    ``SparkSession.createDataFrame`` passes each row through a Python worker, which takes 0.1 s of
    a core, and a second the first time. ``rows`` have values in the order of the columns: None,
    numbers, strings, booleans, datetimes with a time zone, and lists or tuples of these for
    arrays and structs.
    """
    text = json.dumps([_as_json(row, schema) for row in rows])
    kind = f"array<{schema.simpleString()}>"
    # The parser of Iceberg's extensions does not support statement parameters.
    read = F.from_json(F.lit(text), kind, {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.inline(read))


def _as_json(value: Any, kind: DataType) -> Any:
    """A value in the JSON format that Spark reads for a type."""
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
    """The message of a Java error, on one line; of an error in a Python worker, its last line."""
    if isinstance(error, PythonException):
        return str(error).strip().splitlines()[-1]
    java = getattr(error, "java_exception", None)
    if java is None:
        return (str(error).splitlines() or [type(error).__name__])[0]
    cause = java.getCause()
    if cause is not None and cause.getClass().getName() == _WORKER_ERROR:
        return str(cause.getMessage()).strip().splitlines()[-1]
    # A NullPointerException has no message, others an empty one.
    lines = (java.getMessage() or "").splitlines()
    return str(lines[0] if lines else java.toString().splitlines()[0])


def java_trace(error: Exception) -> str:
    """The messages of a Java error and its causes, one per line."""
    messages: list[str] = []
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        messages.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(messages) or str(error)


def reason_text(error: Exception) -> str:
    """The message of an error; of a Java error, its first line."""
    return java_reason(error) if isinstance(error, JAVA_ERRORS) else str(error)


def batch_ends(checkpoint: Path, batch_id: int, topic: str) -> dict[int, int]:
    """The end offsets of a micro-batch of a one-topic query, by partition.

    Before it calls the batch's function, Spark writes the offsets to the checkpoint's
    ``offsets`` folder: a version line, a line of metadata, then a line of JSON for each source.
    """
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    ends: dict[str, int] = json.loads(lines[2])[topic]
    return {int(partition): offset for partition, offset in ends.items()}


def import_classes(spark: SparkSession) -> None:
    """Import the classes that PySpark looks up by simple names into Py4J.

    Otherwise Py4J searches every package, each time through all JARs.
    """
    for name in _ASKED_FOR:
        java_import(spark._jvm, name)


def process(spark: SparkSession) -> Popen[bytes] | None:
    """The JVM process of the session; None if another process started it."""
    gateway: Any = getattr(spark.sparkContext, "_gateway", None)
    return getattr(gateway, "proc", None)


def task_listener(spark: SparkSession) -> Any:
    """PySpark's accumulator server; None if there is none."""
    return getattr(spark.sparkContext, "_accumulatorServer", None)


def observe(frame: DataFrame, observation: Observation, aggregates: Sequence[Column]) -> DataFrame:
    """Observe aggregates on the rows of a DataFrame: :func:`observed_row`."""
    return frame.observe(observation, F.struct(*aggregates).alias(_OBSERVED))


def observed_row(observation: Observation) -> Any:
    """The observed aggregates as a Java ``Row``, so that nested rows do not pass through Python.

    One struct, since Spark 4.0 has no method that returns all of them as a row.
    """
    observed: Any = observation._jo
    return observed.getAsJava().get(_OBSERVED)


def smallest(column: Column, most: int) -> Column:
    """An aggregate: the ``most`` smallest values of a column, without nulls."""
    return InternalFunction.collect_top_k(column, most, reverse=False)
