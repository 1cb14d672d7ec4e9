"""Validation: decodes each record of a batch, and finds those to quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
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

from spark_ingest.avro.evolution import TopicSchema
from spark_ingest.avro.framing import Part
from spark_ingest.lake import bronze
from spark_ingest.records import avro_check, decode, java_checks

KAFKA_ROWS = StructType(
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

REFUSED = "refused"
"""Additional column with the error of a record that its reader rejects; null otherwise."""
REFUSED_AS = StructType(
    [StructField(name, StringType()) for name in ("stage", "error_class", "error_message")]
)


_UNKNOWN = "unknown_id"


_UNDECODABLE = "undecodable"


_LEFT_OVER = "left_over_bytes"


@dataclass(frozen=True)
class Validated:
    """A batch's decoded records, for bronze and quarantine.

    Attributes:
        records: Kafka's columns under their bronze names, ``_kafka_value``, and ``_error``: why
            the record is quarantined, null if it is valid.
        columns: The table's columns for the valid records, without the metadata.
        value: The schemas that the values were decoded with.
        key: The schemas of the keys, if they are decoded.
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
class Validator:
    """Validates the records of a topic, with columns created once for its schemas.

    Attributes:
        kafka: Kafka's columns under their bronze names.
        steps: Columns by name that are added step by step, each using the ones before.
        columns: As in :class:`Validated`.
        value: The schemas of the values.
        key: The schemas of the keys, if they are decoded.
    """

    kafka: tuple[Column, ...]
    steps: tuple[dict[str, Column], ...]
    columns: dict[str, Column]
    value: TopicSchema
    key: TopicSchema | None

    def validate(self, records: DataFrame) -> Validated:
        """Decode and validate every record.

        ``records`` are rows of Spark's Kafka source, with headers; some may be ``REFUSED``.
        """
        if REFUSED not in records.columns:
            records = records.select(*self.kafka)
            for step in self.steps:
                records = records.withColumns(step)
            return Validated(records, self.columns, self.value, self.key)
        records = records.select(*self.kafka, REFUSED)
        for step in self.steps:
            records = records.withColumns(step)
        records = records.withColumn("_error", F.coalesce(REFUSED, "_error")).drop(REFUSED)
        return Validated(records, self.columns, self.value, self.key)


def validator(
    topic_id: str, value: TopicSchema, key: TopicSchema | None, most_bytes: int
) -> Validator:
    """Create the validator of a topic.

    ``topic_id`` is Kafka's UUID of the topic; ``key`` has the schemas of the keys, if they are
    decoded; ``most_bytes`` is the maximum size of a value, and of a key.
    """
    kafka = [F.col(name).alias(f"_kafka_{name}") for name in KAFKA_ROWS.names]
    kafka.append(F.lit(topic_id).alias("_kafka_topic_id"))
    kafka += _inflated("value", value, most_bytes)
    if key is not None:
        kafka += _inflated("key", key, most_bytes)
    errors = [size_error(most_bytes), part_error("value", value)]
    first, then = _decode("value", value, most_bytes)
    columns = decode.fields("value", value) if value.usable else {}
    if key is not None:
        of_key = _decode("key", key, most_bytes)
        first, then = first | of_key[0], then | of_key[1]
        errors.append(part_error("key", key))
        if key.usable and key.columns.fields:
            columns[bronze.KEY] = decode.whole("key", key)
    # Few steps, because Spark analyzes the plan again for each.
    steps = [step for step in (first, then) if step]
    steps.append({"_error": F.coalesce(*errors)})
    return Validator(tuple(kafka), tuple(steps), columns, value, key)


def _inflated(part: Part, schema: TopicSchema, most_bytes: int) -> list[Column]:
    """The uncompressed bytes of values or keys whose framing may compress them.

    Those that cannot be inflated, or to more than ``most_bytes``, stay as they are, so that they
    do not begin with the framing's marker.
    """
    framing = schema.framing
    if not framing.may_be_compressed:
        return []
    found = java_checks.applied(["GlueInflate"], part, BinaryType(), most_bytes)
    return [found.alias(framing.column(part))]


def _decode(
    part: Part, schema: TopicSchema, most_bytes: int
) -> tuple[dict[str, Column], dict[str, Column]]:
    """Columns that decode ``_kafka_<part>`` into ``_<part>``, and those that depend on them."""
    first = {f"_{part}_schema_id": schema.framing.schema_id(part, schema.writers)}
    if not schema.usable:
        return first, {}
    decoded = {f"_{part}": decode.decoded(part, schema)}
    problem = decode.problem(part, schema, most_bytes)
    if problem is None:
        return first | decoded, {}
    texts = decode.texts(part, schema)
    if texts is not None:
        decoded[f"_{part}_texts"] = texts
    return {**first, f"_{part}_problem": problem}, decoded


def part_error(part: Part, schema: TopicSchema) -> Column:
    """Why a record's value or key is quarantined; null if it is valid.

    Args:
        part: ``value`` or ``key``: validates ``_kafka_<part>`` (null is valid: a tombstone, or no
            key), with its ``_<part>_schema_id`` and the decoded ``_<part>``.

    Returns:
        struct<stage: string, error_class: string, error_message: string>.
    """
    framed, schema_id = f"_kafka_{part}", F.col(f"_{part}_schema_id")
    number, size = schema_id.cast("string"), F.length(framed).cast("string")
    ids = [*schema.writers, *schema.incompatible]
    undecodable = ~decode.is_good(part, schema) if schema.usable else F.lit(True)

    def reason(stage: str, error_class: str, *message: Column | str) -> Column:
        texts = [F.lit(text) if isinstance(text, str) else text for text in message]
        return F.struct(
            F.lit(stage).alias("stage"),
            F.lit(_error_class(part, error_class)).alias("error_class"),
            F.concat(*texts).alias("error_message"),
        )

    framing = schema.framing
    validated = F.when(F.col(framed).isNull(), F.lit(None))
    if framing.has_ids:
        validated = validated.when(
            schema_id.isNull(),
            reason("framing", "not_framed", f"{part} of ", size, f" bytes has no {framing.title}"),
        )
    for bad_id, why in schema.incompatible.items():
        text = f"{part} schema {bad_id} does not fit the table: {why}"
        validated = validated.when(
            framing.has_schema(part, bad_id), reason("schema", "incompatible", text)
        )
    if framing.has_ids:
        validated = validated.when(
            ~schema_id.isin(ids) if ids else F.lit(True),
            reason("schema", _UNKNOWN, f"{part} schema ", number, " is not in the registry"),
        )
    problem = F.col(f"_{part}_problem")
    if schema.readings:
        place = F.substring(problem, 2, 10)
        validated = validated.when(
            F.startswith(problem, F.lit(avro_check.LEFT_OVER)),
            reason(
                "decode",
                _LEFT_OVER,
                f"{part} of ",
                size,
                " bytes: its schema ends at byte ",
                place,
                ", trailing bytes follow",
            ),
        )
    if schema.readings or framing.format == "json":
        whose: list[Column | str] = [f"{part} schema ", number] if framing.has_ids else [part]
        validated = validated.when(
            problem.isNotNull(), reason("decode", _UNDECODABLE, *whose, ": ", problem)
        )
    text = f" bytes is not valid {framing.name}, which the source declares"
    if schema.readings:
        text = (
            " bytes exceeds a limit of Spark's decoder: see org.apache.avro.limits in "
            "profiles/spark-defaults.conf"
        )
    return validated.when(undecodable, reason("decode", _UNDECODABLE, f"{part} of ", size, text))


def size_error(limit: int) -> Column:
    """The error of an oversized record, like :func:`part_error`; null otherwise.

    ``limit`` is the maximum size in bytes of a value, and of a key.
    """
    validated = F.lit(None)
    for part in ("key", "value"):
        size = F.length(f"_kafka_{part}")
        text = F.concat(
            F.lit(f"{part} of "), size.cast("string"), F.lit(f" bytes: max_value_bytes is {limit}")
        )
        why = F.struct(
            F.lit("size").alias("stage"),
            F.lit(_error_class(part, "oversized")).alias("error_class"),
            text.alias("error_message"),
        )
        validated = F.when(size > limit, why).otherwise(validated)
    return validated


def unknown_id(part: str) -> Column:
    """The schema id of a record whose error is an unknown schema id; null otherwise."""
    is_unknown = F.col("_error")["error_class"] == _error_class(part, _UNKNOWN)
    return F.when(is_unknown, F.col(f"_{part}_schema_id"))


def _error_class(part: str, error_class: str) -> str:
    return error_class if part == "value" else f"{part}_{error_class}"
