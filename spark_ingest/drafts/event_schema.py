"""Derive an event stream from the schemas of its topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spark_ingest.avro.evolution import combine
from spark_ingest.avro.schema import AvroSchema, WriterSchema
from spark_ingest.captured import AFTER
from spark_ingest.drafts.captured_columns import CapturedColumn
from spark_ingest.drafts.captured_schema import fields_of, model_columns
from spark_ingest.errors import ConfigurationError

ABSENT = "produce a record first, or read the columns from a file with --csv"


@dataclass(frozen=True)
class EventStream:
    """A topic's events, as its schemas describe them.

    Attributes:
        key_type: The type of the decoded key in bronze; None without keys.
        fields: The fields of the value in bronze, in order: names and types.
        columns: The columns of the model.
        required: The model's names of the columns that are never null.
        left_out: The fields that the model excludes, with their types in bronze.
    """

    topic: str
    key_type: str | None
    fields: Mapping[str, str]
    columns: tuple[CapturedColumn, ...]
    required: tuple[str, ...]
    left_out: Mapping[str, str]

    @property
    def event_time(self) -> str | None:
        """The only timestamp field, as event time; None if there is none or several."""
        times = [c.source for c in self.columns if c.contract == "timestamp"]
        return times[0] if len(times) == 1 else None


def read_events(
    topic: str,
    values: Sequence[WriterSchema],
    keys: Sequence[WriterSchema],
    entity: str,
    taken: Collection[str] = (),
) -> EventStream:
    """Derive the event stream of a topic from its schemas.

    ``values`` and ``keys`` are all versions of their schemas, the newest last; ``keys`` is empty
    if the topic has no subject for them. ``entity`` is the name of one event, such as ``order``;
    ``taken`` are names that columns of the model must not have.

    Raises:
        ConfigurationError: There is no schema, none of its fields can be in a model, or it is
            of a captured table.
    """
    fields, newest = fields_of(topic, values, ABSENT)
    if "__op" in fields or {AFTER, "op", "source"} <= set(fields):
        raise ConfigurationError(
            f"{topic} has the changes of a captured table: `spark-ingest new-captured` "
            "writes its models"
        )
    written = {name: kind.original for name, kind in newest.fields.items()}
    columns, left_out = model_columns(
        fields, written, newest.docs, entity, taken=taken, rows="records", writer="the record"
    )
    if not columns:
        raise ConfigurationError(
            f"no field of {topic} has a type that both engines support: declare the stream and "
            "write its model by hand (CONTRIBUTING.md, Add a stream)"
        )
    key_type = combine(keys).whole if keys else None
    return EventStream(
        topic=topic,
        key_type=None if key_type is None else key_type.simpleString(),
        fields={name: kind.simpleString() for name, kind in fields.items()},
        columns=tuple(columns),
        required=tuple(
            column.name
            for column in columns
            if not _is_nullable([each.schema for each in values], column.source)
        ),
        left_out=left_out,
    )


def _is_nullable(schemas: Sequence[AvroSchema], name: str) -> bool:
    """Whether a field is missing or nullable in one of the schemas."""
    return any(name not in (of := _types(schema)) or of[name] for schema in schemas)


def _types(schema: AvroSchema) -> dict[str, bool]:
    """Whether fields are nullable, by name."""
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    return {
        each["name"]: isinstance(each["type"], list) and "null" in each["type"] for each in fields
    }
