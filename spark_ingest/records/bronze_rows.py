"""What a bronze table takes: the table grown to its topic's schemas, and its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_ingest.avro.column_types import clash
from spark_ingest.avro.evolution import TopicSchema
from spark_ingest.errors import ConfigurationError, ServiceUnavailable
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.records.topic_schemas import Schemas, described_columns
from spark_ingest.records.validation import KAFKA_ROWS, Validated, validator
from spark_ingest.sources import Stream

_MOST_SHOWN = 10
_RECORD_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_OF_BATCH = ("_ingested_at", "_commit_id")


def validate_with_registry(records: DataFrame, topic_id: str, schemas: Schemas) -> Validated:
    """Validate records of a topic with the schemas that are registered now.

    ``records`` are rows of Spark's Kafka source, with headers; ``topic_id`` is Kafka's UUID of
    their topic.

    Raises:
        ServiceUnavailable: The registry is unavailable, or has lost the subject.
    """
    value, key = current_schemas(records.sparkSession, schemas)
    limit = schemas.stream.ingest.max_value_bytes
    return validator(topic_id, value, key, limit).validate(records)


def current_schemas(
    spark: SparkSession, schemas: Schemas
) -> tuple[TopicSchema, TopicSchema | None]:
    """The schemas of a topic's values and keys as they are registered now.

    Raises:
        ServiceUnavailable: The registry is unavailable, or has lost the subject.
    """
    schemas.hold(spark)
    value = schemas.value()
    _refuse_described(spark, schemas)
    if not value.usable and not value.incompatible:
        # The table was made from a schema: that there is none now is no record's fault.
        cause = "any more: bring the subject back"
        if schemas.stream.ingest.captured is not None:
            cause = "for the records that are there: does the connector register there?"
        raise ServiceUnavailable(
            f"{schemas.registry.url} has no schema under {', '.join(schemas.stream.subjects)} "
            f"{cause}, or fix registry.url in profiles/ingest.yml"
        )
    return value, schemas.key()


def planned_columns(spark: SparkSession, schemas: Schemas) -> StructType:
    """The columns that a stream's table needs for the schemas registered now.

    For a captured table of which nothing is registered yet, those that its source describes.

    Raises:
        ConfigurationError: No usable value schema is registered, or the source's types
            contradict it.
        ServiceUnavailable: The registry is unavailable.
    """
    schemas.hold(spark)
    stream, value = schemas.stream, schemas.value()
    _refuse_described(spark, schemas)
    if not value.usable:
        described = _before_capture(stream, value)
        if described.fields:
            return bronze.table_columns(described)
        reasons = "; ".join(value.incompatible.values()) or "none is registered"
        several = "s" if len(stream.subjects) > 1 else ""
        subjects = ", ".join(stream.subjects)
        raise ConfigurationError(
            f"source {stream.name}: no usable schema under subject{several} {subjects} "
            f"({reasons}): let the producer register one first (`sandbox up` does for the "
            f"sandbox){_or_described(stream)}{_or_elsewhere(schemas, value)}"
        )
    nothing = spark.createDataFrame([], KAFKA_ROWS)
    made = validator("", value, schemas.key(), stream.ingest.max_value_bytes)
    return bronze.table_columns(made.validate(nothing).schema())


def _before_capture(stream: Stream, value: TopicSchema) -> StructType:
    """What a source describes of a captured table that has no schema yet; else nothing."""
    if stream.ingest.captured is None or value.incompatible:
        return StructType([])
    return described_columns(stream)


def _or_described(stream: Stream) -> str:
    if stream.ingest.captured is None:
        return ""
    return f", or describe its columns with their data_type in {stream.file}"


def _or_elsewhere(schemas: Schemas, value: TopicSchema) -> str:
    """Which setting finds schemas that are registered under other subjects."""
    if value.incompatible or value.framing.name != "confluent":
        return ""
    stream = schemas.stream
    alike = subjects_alike(schemas.registry.subjects(), stream)
    shown = ", ".join(alike[:_MOST_SHOWN])
    if len(alike) > _MOST_SHOWN:
        shown += f" and {len(alike) - _MOST_SHOWN} more"
    has = f" (the registry has {shown})" if shown else ""
    where = f"config.meta.ingest.subjects in {stream.file}"
    if stream.ingest.subjects:
        return f", or correct {where}{has}"
    return (
        ". Where it names subjects after records (RecordNameStrategy) or after topic and "
        f"record (TopicRecordNameStrategy), list them as {where}{has}"
    )


def subjects_alike(subjects: Iterable[str], stream: Stream) -> list[str]:
    """Those subjects that the values of a stream may be registered under, by name.

    Returns:
        Those of its topic, and those of the records that its source declares; where there are
        none, all that are named as a record with a namespace is.
    """
    others = sorted(s for s in subjects if not s.endswith(("-key", "-value")))
    declared = {_short(s) for s in stream.ingest.subjects or ()}
    near = [s for s in others if s.startswith(f"{stream.topic}-") or _short(s) in declared]
    return near or [s for s in others if _RECORD_NAME.fullmatch(s)]


def _short(subject: str) -> str:
    return re.split(r"[.-]", subject)[-1].lower()


def _refuse_described(spark: SparkSession, schemas: Schemas) -> None:
    """Refuse a captured table that was made as its source says, where the schema says otherwise.

    Once it has rows, what does not fit it goes to quarantine as in any table.
    """
    stream = schemas.stream
    if stream.ingest.captured is None:
        return
    parts = (schemas.value(), schemas.key())
    if not any(part is not None and part.incompatible for part in parts):
        return
    table = stream.table
    if not bronze.exists(spark, table) or not bronze.is_empty(spark, table):
        return
    # What the schemas say by themselves.
    alone = Schemas(schemas.registry, stream, 0, schemas.wait)
    columns, key = list(alone.value().columns), alone.key()
    if key is not None and key.usable and key.columns.fields:
        columns.append(StructField(bronze.KEY, key.whole))
    wanted = StructType(columns)
    why = clash(spark.table(f"{CATALOG}.{table}").schema, wanted, "")
    if why is None:
        return
    name = re.split(r"\W", why, maxsplit=1)[0]
    raise ConfigurationError(
        f"{stream.file}: source {stream.name}: column {name}: its data_type contradicts the "
        f"topic's schema ({why}): write {wanted[name].dataType.simpleString()}, and drop the "
        f'table, which is empty and is made again: `sandbox sql "drop table {table}"`'
    )


def grow_table(spark: SparkSession, table: str, types: StructType) -> None:
    """Give a table the columns that validated records need.

    ``types`` has the records' columns, without the metadata; ``table`` is ``schema.name``.

    Raises:
        ConfigurationError: A column's type cannot become the wanted one.
    """
    wanted = bronze.table_columns(types)
    if bronze.missing_columns(spark, table, wanted):
        bronze.evolve(Jvm(spark), table, wanted)


def table_rows(
    good: DataFrame, columns: dict[str, Column], table: str, commit_id: int, began: datetime
) -> DataFrame:
    """Good records as their table's columns; those that no writer has are null.

    ``good`` has none that bronze cannot take; ``columns`` are the table's for them, without the
    metadata; ``commit_id`` is of the commit that will publish them, and ``began`` is
    ``_ingested_at``.
    """
    types = good.select(*(c.alias(n) for n, c in columns.items())).schema
    fields = good.sparkSession.table(f"{CATALOG}.{table}").schema
    rows = row_columns(columns, types, fields) | batch_columns(commit_id, began)
    return good.select(*(rows[name] for name in fields.names))


def row_columns(
    columns: dict[str, Column], types: StructType, table: StructType
) -> dict[str, Column]:
    """A table's columns of a validated record by name, all but those of :func:`batch_columns`.

    ``columns`` are the table's for a good record, without the metadata, ``types`` their names
    and types; ``table`` has the table's columns.
    """
    have = {name: F.col(name) for name in bronze.METADATA.names if "_kafka" in name}
    have |= columns
    # Bad records get here too, and those carry any number.
    have["_schema_id"] = F.col("_value_schema_id").try_cast("int")
    have["_is_tombstone"] = F.col("_kafka_value").isNull()
    kinds = {field.name: field.dataType for field in types}
    return {
        f.name: bronze.conform(have.get(f.name, F.lit(None)), kinds.get(f.name), f.dataType).alias(
            f.name
        )
        for f in table
        if f.name not in _OF_BATCH
    }


def batch_columns(commit_id: int, began: datetime) -> dict[str, Column]:
    """The columns that are the same for all rows of a batch, by name.

    As literals they would stand in the code that Spark generates for the plan, and every
    batch would be compiled again and begin cold: half a second of a core. Spark refers to an
    array, and the topic, which is never null, keeps it from taking out the element beforehand.

    Each has exactly its column's type, as all columns have and stand in the table's order: where
    one does not, Spark makes all rows again before it writes them, the headers even without
    generated code.
    """
    micros = round(began.timestamp() * 1_000_000)
    values = {"_ingested_at": f"timestamp_micros({micros})", "_commit_id": f"{commit_id}L"}
    # As SQL: made of columns it would be a dozen questions to the JVM for each batch.
    return {
        name: F.expr(f"get(array({value}, {value}), int(isnull(_kafka_topic))) as {name}")
        for name, value in values.items()
    }
