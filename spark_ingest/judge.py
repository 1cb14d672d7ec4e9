"""Judging: what each record of a batch decodes to, and whether bronze can take it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_ingest import bronze, decode, quarantine
from spark_ingest.errors import ConfigurationError
from spark_ingest.schema import TopicSchema
from spark_ingest.topic_schemas import Schemas
from spark_ingest.wire_format import Part

_KAFKA_ROWS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("headers", bronze.HEADERS),
    ]
)


@dataclass(frozen=True)
class Judged:
    """A batch's records, decoded, with what bronze and quarantine need of them.

    Attributes:
        records: Kafka's columns under their bronze names, ``_kafka_value``, and
            ``_verdict``: why bronze cannot take the record, null where it can.
        columns: The table's columns for the good ones, without the metadata.
        value: The schemas that the values were decoded with.
        key: Those of the keys where they are decoded.
    """

    records: DataFrame
    columns: dict[str, Column]
    value: TopicSchema
    key: TopicSchema | None

    def schema(self) -> StructType:
        """Names and types of ``columns``."""
        return self.records.select(
            *(column.alias(name) for name, column in self.columns.items())
        ).schema


@dataclass(frozen=True)
class Recipe:
    """How records of a topic are judged: columns, made once for its schemas.

    Attributes:
        taken: Kafka's columns under their bronze names.
        steps: Columns by name that are added one after the other, each by the ones before.
        columns: As :class:`Judged` has them.
        value: The schemas of the values.
        key: Those of the keys where they are decoded.
    """

    taken: tuple[Column, ...]
    steps: tuple[dict[str, Column], ...]
    columns: dict[str, Column]
    value: TopicSchema
    key: TopicSchema | None

    def judge(self, records: DataFrame) -> Judged:
        """Decode every record and say of each whether bronze can take it.

        Args:
            records: Rows of Spark's Kafka source, with headers.
        """
        records = records.select(*self.taken)
        for step in self.steps:
            records = records.withColumns(step)
        return Judged(records, self.columns, self.value, self.key)


def recipe(
    topic_id: str, value: TopicSchema, key: TopicSchema | None, most_bytes: int
) -> Recipe:
    """How records of a topic are judged.

    Args:
        topic_id: Kafka's UUID of their topic.
        value: Schemas of the values.
        key: Schemas of the keys where they are decoded.
        most_bytes: Most bytes of a value, and of a key.
    """
    taken = [F.col(name).alias(f"_kafka_{name}") for name in _KAFKA_ROWS.names]
    taken.append(F.lit(topic_id).alias("_kafka_topic_id"))
    verdicts = [quarantine.size_verdict(most_bytes), quarantine.verdict("value", value)]
    first, then = _decode("value", value)
    columns = decode.fields("value", value) if value.usable else {}
    if key is not None:
        of_key = _decode("key", key)
        first, then = first | of_key[0], then | of_key[1]
        verdicts.append(quarantine.verdict("key", key))
        if key.usable and key.columns.fields:
            columns[bronze.KEY] = decode.whole("key", key)
    # Spark analyses the plan anew for each of them.
    steps = [step for step in (first, then) if step]
    steps.append({"_verdict": F.coalesce(*verdicts)})
    return Recipe(tuple(taken), tuple(steps), columns, value, key)


def planned_columns(spark: SparkSession, schemas: Schemas) -> StructType:
    """The columns that a stream's table needs for the schemas registered now.

    Raises:
        ConfigurationError: No usable value schema is registered.
        ServiceUnavailable: The registry does not answer.
    """
    schemas.hold(spark)
    stream, value = schemas.stream, schemas.value()
    if not value.usable:
        reasons = "; ".join(value.misfits.values()) or "none is registered"
        raise ConfigurationError(
            f"source {stream.name}: no usable schema under subject {stream.topic}-value "
            f"({reasons}): let the producer register one first (`sandbox up` does for the sandbox)"
        )
    nothing = spark.createDataFrame([], _KAFKA_ROWS)
    made = recipe("", value, schemas.key(), stream.ingest.max_value_bytes)
    return bronze.table_columns(made.judge(nothing).schema())


def _decode(
    part: Part, schema: TopicSchema
) -> tuple[dict[str, Column], dict[str, Column]]:
    """Columns that decode ``_kafka_<part>`` into ``_<part>``, and those that need these."""
    first = {f"_{part}_schema_id": schema.framing.schema_id(part, schema.writers)}
    if not schema.usable:
        return first, {}
    decoded = {f"_{part}": decode.decoded(part, schema)}
    told = {
        "problem": decode.problem(part, schema),
        "texts": decode.texts(part, schema),
    }
    needed = {
        f"_{part}_{name}": each for name, each in told.items() if each is not None
    }
    return (first | needed, decoded) if needed else (first | decoded, {})
