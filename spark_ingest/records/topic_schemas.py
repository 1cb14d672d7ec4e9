"""The writer schemas of a topic's records, from the registry."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_ingest.avro.evolution import JSON_TEXT, Problem, TopicSchema, combine, declared
from spark_ingest.avro.framing import Framing, Part, framing_named
from spark_ingest.avro.reader_schemas import WRAPPED
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.connect.registry import LARGEST_ID, SchemaRegistry
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG
from spark_ingest.records.avro_check import schema_problem
from spark_ingest.sources import Stream

_ID_RETRY_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 60.0
# Registries count from 1. If a batch has more unknown ids than this, most are bytes that only
# look like a framing, and a request for each would delay the valid records.
_MOST_ASKED = 50
RESERVED = frozenset(name.lower() for name in bronze.RESERVED)
_PLAIN = (
    BooleanType, IntegerType, LongType, FloatType, DoubleType, DecimalType, StringType,
    BinaryType, DateType, TimestampType, TimestampNTZType,
)  # fmt: skip


@dataclass
class Schemas:
    """The registered schemas of one topic, and unknown ids.

    Attributes:
        unknown_wait: Seconds of retries for an unknown id, from when its records existed, before
            they are quarantined.
        wait: Sleeps some seconds; raises if the stream is being stopped.
    """

    registry: SchemaRegistry
    stream: Stream
    unknown_wait: float
    wait: Callable[[float], None]
    _others: dict[Part, list[int]] = field(default_factory=lambda: {"value": [], "key": []})
    _held: StructType | None = None
    _spark: SparkSession | None = None
    _problem: Problem | None = None
    _made: dict[Part, tuple[tuple[int, ...], TopicSchema]] = field(default_factory=dict)
    _unknown: dict[int, float] = field(default_factory=dict)

    def hold(self, spark: SparkSession) -> None:
        """Take the columns of the stream's existing table, and the decoder, into account."""
        self._problem, self._spark = schema_problem, spark
        if self._held is None:
            self._read_table()

    def value(self) -> TopicSchema:
        """The value schemas, read again: a batch's ids were registered before it started.

        Returns the same object as before if there is no new schema.
        """
        return self._of("value")

    def key(self) -> TopicSchema | None:
        """The key schemas, if the source declares a key."""
        return self._of("key") if self.stream.ingest.key else None

    def unregistered(self) -> tuple[str, ...]:
        """The declared subjects that are missing in the registry.

        Raises:
            ConfigurationError: The registry denies access.
            ServiceUnavailable: It is unavailable.
        """
        ids = framing_of(self.stream, "value").ids
        return tuple(
            subject
            for subject in self.stream.ingest.subjects or ()
            if not self.registry.subject_schemas(subject, ids)
        )

    def learn(self, ids: list[int], part: str, since: float | None = None) -> bool:
        """Look up ids that no version of the subject has, with retries.

        Args:
            ids: Schema ids in records, of which the lowest are looked up. One that stayed unknown
                is looked up again after a minute, without retries.
            part: ``value`` or ``key``.
            since: A time by ``time.monotonic()`` at which the records existed: their schemas were
                registered before, so the wait starts then. None for now.

        Returns:
            Whether one of them exists, under another subject: decode the batch again.
        """
        of: Part = "key" if part == "key" else "value"
        now = time.monotonic()
        missing = [
            n
            for n in sorted(ids)[:_MOST_ASKED]
            if n <= LARGEST_ID
            and now - self._unknown.get(n, -_ASK_AGAIN_SECONDS) >= _ASK_AGAIN_SECONDS
        ]
        patient = any(n not in self._unknown for n in missing)
        begin = now if since is None else since
        deadline = begin + self.unknown_wait if patient else now
        found = False
        while missing:
            for number in list(missing):
                if self.registry.schema(number, framing_of(self.stream, of).ids) is not None:
                    self._others[of].append(number)
                    missing.remove(number)
                    found = True
            if not missing or time.monotonic() >= deadline:
                break
            self.wait(_ID_RETRY_SECONDS)
        self._unknown.update(dict.fromkeys(missing, time.monotonic()))
        return found

    def _of(self, part: Part) -> TopicSchema:
        framing = framing_of(self.stream, part)
        if framing.format != "avro":
            return declared(framing, _declared_columns(self.stream, part, framing))
        writers = self._writers(part, framing)
        ids = tuple(writer.id for writer in writers)
        before = self._made.get(part)
        if before is None or before[0] != ids:
            if before is not None and ids[: len(before[0])] != before[0]:
                # A version was inserted before others, which may have added columns to the table.
                self._read_table()
            is_value = part == "value"
            made = combine(
                writers,
                self._held_part(part),
                RESERVED if is_value else (),
                framing,
                self._problem,
                part,
                self.stream.record_types if is_value else (),
            )
            self._made[part] = before = (ids, made)
        return before[1]

    def _read_table(self) -> None:
        if self._spark is not None and bronze.exists(self._spark, self.stream.table):
            self._held = self._spark.table(f"{CATALOG}.{self.stream.table}").schema
            self._made.clear()

    def _writers(self, part: Part, framing: Framing) -> list[WriterSchema]:
        ingest = self.stream.ingest
        if not framing.has_ids:
            own = ingest.value_schema if part == "value" else ingest.key_schema
            return [WriterSchema(0, own)]
        key = (f"{self.stream.topic}-key",)
        found: dict[int, WriterSchema] = {}
        for subject in self.stream.subjects if part == "value" else key:
            for writer in self.registry.subject_schemas(subject, framing.ids):
                found.setdefault(writer.id, writer)
        # In order of ids: the order of their discovery changes with a restart.
        for number in sorted(set(self._others[part]) - found.keys()):
            other = self.registry.schema(number, framing.ids)
            if other is not None:
                found[number] = other
        return list(found.values())

    def _held_part(self, part: Part) -> DataType | None:
        if self._held is None:
            return None
        if part == "key":
            return next((f.dataType for f in self._held if f.name == bronze.KEY), None)
        return StructType([f for f in self._held if f.name.lower() not in RESERVED])


def framing_of(stream: Stream, part: Part) -> Framing:
    """The framing of values or keys that a stream's source declares."""
    name = stream.ingest.framing if part == "value" else stream.ingest.key
    return framing_named(name or "bytes", stream.ingest.ids or "global")


def _declared_columns(stream: Stream, part: Part, framing: Framing) -> StructType:
    """The declared columns of JSON, or the single column of text or bytes."""
    if framing.format != "json":
        kind = StringType() if framing.format == "string" else BinaryType()
        return StructType([StructField(WRAPPED, kind)])
    if part == "key":
        key = _data_type(stream, bronze.KEY)
        if not isinstance(key, StructType):
            raise ConfigurationError(
                f"{stream.file}: source {stream.name}: column _key: a JSON key is an object, "
                "so its data_type is struct<…>; for other text set key: string"
            )
        return key
    named = [name for name in stream.types if not name.startswith("_")]
    fields = [StructField(name, _data_type(stream, name)) for name in named]
    return StructType([*fields, StructField(JSON_TEXT, StringType())])


def described_columns(stream: Stream) -> StructType:
    """The columns with a declared type: the value's, then the decoded key.

    Raises:
        ConfigurationError: A type is not supported by the lake.
    """
    named = [name for name in stream.types if name.lower() not in RESERVED]
    if stream.ingest.key and bronze.KEY in stream.types:
        named.append(bronze.KEY)
    # All in one call: a call to the JVM takes longer than parsing a type.
    ddl = ", ".join(f"`{name}` {stream.types[name]}" for name in named)
    try:
        kind = DataType.fromDDL(ddl) if named else NullType()
    except PySparkException:
        kind = NullType()
    if isinstance(kind, StructType) and kind.names == named and _is_of_lake(kind):
        return kind
    # One by one, so that the error names the wrong one.
    return StructType([StructField(name, _data_type(stream, name)) for name in named])


def _data_type(stream: Stream, column: str) -> DataType:
    try:
        kind = DataType.fromDDL(stream.types[column])
    except PySparkException:
        kind = NullType()
    if not _is_of_lake(kind):
        raise ConfigurationError(
            f"{stream.file}: source {stream.name}: column {column}: data_type "
            f"{stream.types[column]!r} is not supported: use boolean, int, bigint, float, "
            "double, decimal(p,s), string, binary, date, timestamp, timestamp_ntz, "
            "array<…>, map<string,…>, struct<…>"
        )
    return kind


def _is_of_lake(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_of_lake(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_of_lake(kind.elementType)
    if isinstance(kind, MapType):
        return kind.keyType == StringType() and _is_of_lake(kind.valueType)
    return type(kind) in _PLAIN
