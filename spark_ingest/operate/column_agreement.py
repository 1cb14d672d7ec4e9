"""Compare the columns of a source in its YAML, the registry and the bronze table."""

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
        data_type: Spark SQL type.
        description: The ``doc`` of its field in the schemas.
    """

    name: str
    data_type: str
    description: str


@dataclass(frozen=True)
class Agreement:
    """The differences of one stream.

    Attributes:
        differences: One message each, with the fix.
        missing: The columns that its YAML does not list, in the table's order.
    """

    stream: Stream
    differences: tuple[str, ...]
    missing: tuple[NewColumn, ...]


def compare(spark: SparkSession, schemas: Schemas) -> Agreement:
    """Compare YAML, registry and table of one stream.

    Raises:
        ConfigurationError: No usable value schema is registered.
        ServiceUnavailable: The registry does not answer.
    """
    stream = schemas.stream
    planned = planned_columns(spark, schemas)
    existing = StructType([])
    lines = [*_of_subjects(schemas), *_of_versions(schemas)]
    if bronze.exists(spark, stream.table):
        existing = spark.table(f"{CATALOG}.{stream.table}").schema
        lines += _of_table(stream, planned, existing)
    else:
        lines.append(
            f"{stream.name}: table {stream.table} does not exist: run `spark-ingest create`"
        )
    columns = _merged(planned, existing)
    lines += _of_yaml(stream, columns)
    docs = schemas.value().docs
    missing = [
        NewColumn(name, kind.simpleString(), " ".join(docs.get(name, "").split()) or _UNDESCRIBED)
        for name, kind in columns.items()
        if name not in stream.columns
    ]
    return Agreement(stream, tuple(lines), tuple(missing))


def _merged(planned: StructType, existing: StructType) -> dict[str, DataType]:
    """The columns of the table after its evolution to the registered schemas."""
    have = {field.name: field.dataType for field in existing}
    found = {}
    for field in planned:
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
            "not have: register a schema in the producer, or fix the name"
        )


def _of_versions(schemas: Schemas) -> Iterator[str]:
    name = schemas.stream.name
    for part, schema in (("value", schemas.value()), ("key", schemas.key())):
        for number, why in ({} if schema is None else schema.incompatible).items():
            yield (
                f"{name}: {part} schema {number} is incompatible ({why}): its records go to "
                "quarantine; register a compatible version in the producer, or use another topic"
            )


def _of_table(stream: Stream, planned: StructType, existing: StructType) -> Iterator[str]:
    have = {field.name: field.dataType for field in existing}
    for field in planned:
        old, new = have.get(field.name), field.dataType
        if old is None:
            what = f"lacks column {field.name} ({new.simpleString()})"
        elif not covers(old, new):
            what = f"has {field.name} as {old.simpleString()}, the schemas as {new.simpleString()}"
        else:
            continue
        yield f"{stream.name}: table {stream.table} {what}: the next batch of `run` evolves it"


def _of_yaml(stream: Stream, columns: dict[str, DataType]) -> Iterator[str]:
    where = f"{stream.name}: {stream.file}"
    for name, kind in columns.items():
        declared, type_ = stream.types.get(name), kind.simpleString()
        if name not in stream.columns:
            yield (f"{where} lacks column {name} ({type_}): add it, or run `schemas check --write`")
        elif declared is None:
            yield f"{where} has no data_type for {name}: add {type_}"
        elif not _same(declared, kind):
            yield f"{where} has {name} as {declared}: change it to {type_}"
    for name in stream.columns:
        if name not in columns:
            yield (
                f"{where} lists column {name}, which is in no schema and not in the table: "
                "remove it, or fix its name"
            )


def _same(declared: str, kind: DataType) -> bool:
    try:
        declared_type = DataType.fromDDL(declared)
    except PySparkException:
        return False
    return _equal(declared_type, kind)


def _equal(one: DataType, other: DataType) -> bool:
    """Whether types are equal, regardless of nullability and the order of struct fields."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        theirs = {field.name: field.dataType for field in other}
        return set(one.names) == set(theirs) and all(
            _equal(field.dataType, theirs[field.name]) for field in one
        )
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return _equal(one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return _equal(one.valueType, other.valueType)
    return holds(one, other) and holds(other, one)
