"""Schema evolution of a bronze table to its topic's schemas, and the table's rows."""

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
    """Validate records of a topic with the currently registered schemas.

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
    """The currently registered schemas of a topic's values and keys.

    Raises:
        ServiceUnavailable: The registry is unavailable, or has lost the subject.
    """
    schemas.hold(spark)
    value, key = schemas.value(), schemas.key()
    _refuse_described(spark, schemas, value, key)
    if not value.usable and not value.incompatible:
        # The table has a schema: a missing subject is not a fault of the records.
        cause = "any more: restore the subject"
        if schemas.stream.ingest.captured is not None:
            cause = "for the existing records: check that the connector registers schemas there"
        raise ServiceUnavailable(
            f"{schemas.registry.url} has no schema under {', '.join(schemas.stream.subjects)} "
            f"{cause}, or fix registry.url in profiles/ingest.yml"
        )
    return value, key


def planned_columns(spark: SparkSession, schemas: Schemas) -> StructType:
    """The columns of a stream's table for the currently registered schemas.

    For a captured table without a registered schema, those in its source's description.

    Raises:
        ConfigurationError: No usable value schema is registered, or the source's types
            contradict it.
        ServiceUnavailable: The registry is unavailable.
    """
    schemas.hold(spark)
    stream, value, key = schemas.stream, schemas.value(), schemas.key()
    _refuse_described(spark, schemas, value, key)
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
    checks = validator("", value, key, stream.ingest.max_value_bytes)
    return bronze.table_columns(checks.validate(nothing).schema())


def _before_capture(stream: Stream, value: TopicSchema) -> StructType:
    """The described columns of a captured table without a schema; empty for other tables."""
    if stream.ingest.captured is None or value.incompatible:
        return StructType([])
    return described_columns(stream)


def _or_described(stream: Stream) -> str:
    if stream.ingest.captured is None:
        return ""
    return f", or describe its columns with their data_type in {stream.file}"


def _or_elsewhere(schemas: Schemas, value: TopicSchema) -> str:
    """Which setting to change if schemas are registered under other subjects."""
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
        ". If it names subjects by record (RecordNameStrategy) or by topic and record "
        f"(TopicRecordNameStrategy), list them in {where}{has}"
    )


def subjects_alike(subjects: Iterable[str], stream: Stream) -> list[str]:
    """Subjects that may have the schemas of a stream's values, by their names.

    Returns:
        Those of its topic, and those of the records that its source declares; otherwise all
        subjects with the name of a record with a namespace.
    """
    others = sorted(s for s in subjects if not s.endswith(("-key", "-value")))
    declared = {_short(s) for s in stream.ingest.subjects or ()}
    near = [s for s in others if s.startswith(f"{stream.topic}-") or _short(s) in declared]
    return near or [s for s in others if _RECORD_NAME.fullmatch(s)]


def _short(subject: str) -> str:
    return re.split(r"[.-]", subject)[-1].lower()


def _refuse_described(
    spark: SparkSession, schemas: Schemas, value: TopicSchema, key: TopicSchema | None
) -> None:
    """Refuse an empty captured table whose described columns contradict the schema.

    If it has rows, incompatible records are quarantined as for any table.
    """
    stream = schemas.stream
    if stream.ingest.captured is None:
        return
    if not any(part is not None and part.incompatible for part in (value, key)):
        return
    table = stream.table
    if not bronze.exists(spark, table) or not bronze.is_empty(spark, table):
        return
    # The columns of the schemas alone, without the table.
    alone = Schemas(schemas.registry, stream, 0, schemas.wait)
    columns, own_key = list(alone.value().columns), alone.key()
    if own_key is not None and own_key.usable and own_key.columns.fields:
        columns.append(StructField(bronze.KEY, own_key.whole))
    wanted = StructType(columns)
    why = clash(spark.table(f"{CATALOG}.{table}").schema, wanted, "")
    if why is None:
        return
    name = re.split(r"\W", why, maxsplit=1)[0]
    raise ConfigurationError(
        f"{stream.file}: source {stream.name}: column {name}: its data_type contradicts the "
        f"topic's schema ({why}): write {wanted[name].dataType.simpleString()}, and drop the "
        f"empty table, which is then recreated: `drop table {CATALOG}.{table}` in Spark SQL "
        "(`sandbox sql` in the sandbox)"
    )


def grow_table(spark: SparkSession, table: str, types: StructType) -> None:
    """Evolve a table to the columns of validated records.

    ``types`` has the records' columns, without the metadata; ``table`` is ``schema.name``.

    Raises:
        ConfigurationError: A column's type cannot be promoted to the wanted one.
    """
    wanted = bronze.table_columns(types)
    if bronze.missing_columns(spark, table, wanted):
        bronze.evolve(Jvm(spark), table, wanted)


def table_rows(
    good: DataFrame, columns: dict[str, Column], table: str, commit_id: int, began: datetime
) -> DataFrame:
    """Valid records as rows of their table; columns that no schema has are null.

    ``columns`` are the decoded columns of ``good``, without the metadata; ``commit_id`` is of the
    commit that will publish them, and ``began`` is ``_ingested_at``.
    """
    types = good.select(*(c.alias(n) for n, c in columns.items())).schema
    fields = good.sparkSession.table(f"{CATALOG}.{table}").schema
    rows = row_columns(columns, types, fields) | batch_columns(commit_id, began)
    return good.select(*(rows[name] for name in fields.names))


def row_columns(
    columns: dict[str, Column], types: StructType, table: StructType
) -> dict[str, Column]:
    """The table's columns of a validated record by name, except those of :func:`batch_columns`.

    ``columns`` are the decoded columns, without the metadata, ``types`` their names and types;
    ``table`` has the table's columns.
    """
    have = {name: F.col(name) for name in bronze.METADATA.names if "_kafka" in name}
    have |= columns
    # Also evaluated for bad records, whose id may be out of range.
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
    """The columns with the same value for all rows of a batch, by name.

    As literals they would be part of Spark's generated code, which would be compiled for every
    batch: half a second of a core. The code refers to an array instead, and the topic, which is
    never null, prevents constant folding of the element.

    All columns have exactly the table's types and order: otherwise Spark projects all rows again
    before it writes them, the headers even without generated code.
    """
    micros = round(began.timestamp() * 1_000_000)
    values = {"_ingested_at": f"timestamp_micros({micros})", "_commit_id": f"{commit_id}L"}
    # As SQL: column functions would take a dozen calls to the JVM per batch.
    return {
        name: F.expr(f"get(array({value}, {value}), int(isnull(_kafka_topic))) as {name}")
        for name, value in values.items()
    }
