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


def judge(
    records: DataFrame, topic_id: str, value: TopicSchema, key: TopicSchema | None
) -> Judged:
    """Decode every record and say of each whether bronze can take it.

    Args:
        records: Rows of Spark's Kafka source, with headers.
        topic_id: Kafka's UUID of their topic.
        value: Schemas of the values.
        key: Schemas of the keys where they are decoded.
    """
    taken = records.select(
        F.col("key").alias("_kafka_key"),
        F.col("value").alias("_kafka_value"),
        F.col("topic").alias("_kafka_topic"),
        F.lit(topic_id).alias("_kafka_topic_id"),
        F.col("partition").alias("_kafka_partition"),
        F.col("offset").alias("_kafka_offset"),
        F.col("timestamp").alias("_kafka_timestamp"),
        F.col("headers").alias("_kafka_headers"),
    )
    taken, verdict = _decode(taken, "value", value)
    columns = decode.fields("value", value) if value.usable else {}
    if key is not None:
        taken, of_key = _decode(taken, "key", key)
        verdict = F.coalesce(verdict, of_key)
        if key.usable and key.columns.fields:
            columns[bronze.KEY] = decode.whole("key", key)
    return Judged(taken.withColumn("_verdict", verdict), columns, value, key)


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
    return bronze.table_columns(judge(nothing, "", value, schemas.key()).schema())


def _decode(
    taken: DataFrame, part: Part, schema: TopicSchema
) -> tuple[DataFrame, Column]:
    """Decode ``_kafka_<part>`` into ``_<part>``; also the verdict on it."""
    number = schema.framing.schema_id(part, schema.writers)
    taken = taken.withColumn(f"_{part}_schema_id", number)
    if schema.usable:
        taken = taken.withColumn(f"_{part}", decode.decoded(part, schema))
        texts = decode.texts(part, schema)
        if texts is not None:
            taken = taken.withColumn(f"_{part}_texts", texts)
    return taken, quarantine.verdict(part, schema)
