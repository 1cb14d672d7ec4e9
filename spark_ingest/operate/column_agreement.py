"""Whether a source's YAML, the registry and the bronze table say the same of its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from spark_ingest.avro.column_types import covers, holds
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG
from spark_ingest.records.bronze_rows import planned_columns
from spark_ingest.records.topic_schemas import RESERVED, Schemas
from spark_ingest.sources import Stream

_UNDESCRIBED = "The producer's schema does not describe it."


@dataclass(frozen=True)
class NewColumn:
    """A column that a source's YAML should list.

    Attributes:
        data_type: Its type as Spark writes it.
        description: Its doc in the schemas.
    """

    name: str
    data_type: str
    description: str


@dataclass(frozen=True)
class Agreement:
    """What differs for one stream.

    Attributes:
        differences: One line each: what, where, the fix.
        missing: The columns that its YAML does not list, in the table's order.
    """

    stream: Stream
    differences: tuple[str, ...]
    missing: tuple[NewColumn, ...]


def compare(spark: SparkSession, schemas: Schemas) -> Agreement:
    """Compare the three for one stream.

    Raises:
        ConfigurationError: No usable value schema is registered.
        ServiceUnavailable: The registry does not answer.
    """
    stream = schemas.stream
    wanted = planned_columns(spark, schemas)
    held = StructType([])
    lines = [*_of_subjects(schemas), *_of_versions(schemas)]
    if bronze.exists(spark, stream.table):
        held = spark.table(f"{CATALOG}.{stream.table}").schema
        lines += _of_table(stream, wanted, held)
    else:
        lines.append(f"{stream.name}: there is no table {stream.table}: `spark-ingest create`")
    columns = _together(wanted, held)
    lines += _of_yaml(stream, columns)
    docs = schemas.value().docs
    missing = [
        NewColumn(name, _written(kind), " ".join(docs.get(name, "").split()) or _UNDESCRIBED)
        for name, kind in columns.items()
        if name not in stream.columns
    ]
    return Agreement(stream, tuple(lines), tuple(missing))


def _together(wanted: StructType, held: StructType) -> dict[str, DataType]:
    """The columns of the table once it has taken the schemas registered now."""
    have = {field.name: field.dataType for field in held}
    found = {}
    for field in wanted:
        old = have.get(field.name)
        found[field.name] = old if old and covers(old, field.dataType) else field.dataType
    old_ones = {name: kind for name, kind in have.items() if name not in found}
    values = {n: kind for n, kind in found.items() if n.lower() not in RESERVED}
    return {**values, **old_ones, **found}


def _of_subjects(schemas: Schemas) -> Iterator[str]:
    stream = schemas.stream
    for subject in schemas.unregistered():
        yield (
            f"{stream.name}: {stream.file} lists the subject {subject}, which the registry does "
            "not have: let its producer register a schema, or fix its name"
        )


def _of_versions(schemas: Schemas) -> Iterator[str]:
    name = schemas.stream.name
    for part, schema in (("value", schemas.value()), ("key", schemas.key())):
        for number, why in ({} if schema is None else schema.incompatible).items():
            yield (
                f"{name}: {part} schema {number} does not fit ({why}): its records go to "
                "quarantine; let the producer register a version that fits, or use a topic "
                "of its own"
            )


def _of_table(stream: Stream, wanted: StructType, held: StructType) -> Iterator[str]:
    have = {field.name: field.dataType for field in held}
    for field in wanted:
        old, new = have.get(field.name), field.dataType
        if old is None:
            what = f"lacks column {field.name} ({_written(new)})"
        elif not covers(old, new):
            what = f"has {field.name} as {_written(old)}, the schemas as {_written(new)}"
        else:
            continue
        yield f"{stream.name}: table {stream.table} {what}: the next batch of `run` adds it"


def _of_yaml(stream: Stream, columns: dict[str, DataType]) -> Iterator[str]:
    where = f"{stream.name}: {stream.file}"
    for name, kind in columns.items():
        declared, type_ = stream.types.get(name), _written(kind)
        if name not in stream.columns:
            yield (
                f"{where} does not list column {name} ({type_}): add it, or `schemas check --write`"
            )
        elif declared is None:
            yield f"{where} gives no data_type for {name}: write {type_}"
        elif not _same(declared, kind):
            yield f"{where} has {name} as {declared}: write {type_}"
    for name in stream.columns:
        if name not in columns:
            yield (
                f"{where} lists column {name}, which neither a schema nor the table has: "
                "remove it, or fix its name"
            )


def _same(declared: str, kind: DataType) -> bool:
    try:
        mine = DataType.fromDDL(declared)
    except PySparkException:
        return False
    return _alike(mine, kind)


def _alike(one: DataType, other: DataType) -> bool:
    """Equal, whatever the order of a struct's members and what may be null."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        theirs = {field.name: field.dataType for field in other}
        return set(one.names) == set(theirs) and all(
            _alike(field.dataType, theirs[field.name]) for field in one
        )
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return _alike(one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return _alike(one.valueType, other.valueType)
    return holds(one, other) and holds(other, one)


def _written(kind: DataType) -> str:
    return kind.simpleString()
