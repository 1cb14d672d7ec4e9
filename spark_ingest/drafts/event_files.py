"""The text of what a stream of events takes in dbt, in the style of those that are there."""

from __future__ import annotations

from spark_ingest.drafts.event_schema import EventStream
from spark_ingest.drafts.model_text import Docs, Names, grouped, ordered, rendered

_METADATA = (
    "_kafka_topic_id",
    "_kafka_partition",
    "_kafka_offset",
    "_kafka_timestamp",
    "_ingested_at",
    "_commit_id",
)
# A value of each type that a column of a model can have in bronze.
_EXAMPLES = {
    "string": "'x'",
    "boolean": "true",
    "date": "date'2026-01-01'",
    "timestamp": "timestamp'2026-01-01 10:00:00'",
    "timestamp_ntz": "timestamp_ntz'2026-01-01 10:00:00'",
}


def added_names() -> set[str]:
    """The columns that the model has beside those of the events."""
    return {"record_key", "is_tombstone", *_METADATA}


def said_of(names: Names) -> str:
    """What the source of a stream is, where it is new."""
    return f"The events of {names.source}, each a record of a topic."


def staging_sql(names: Names, stream: EventStream) -> str:
    """The staging model: every record, renamed and cast."""
    groups = grouped(stream.columns, ["keys", "flags"])
    return rendered("event_staging.sql", names=names, groups=groups)


def staging_yaml(names: Names, stream: EventStream, docs: Docs) -> str:
    """What the staging model promises, and its unit test: a record, it again, a tombstone."""
    examples = [_example(stream.fields[column.source]) for column in stream.columns]
    return rendered(
        "event_staging.yml",
        names=names,
        stream=stream,
        docs=docs,
        columns=ordered(stream.columns),
        examples=examples,
        metadata=_METADATA,
    )


def _example(kind: str) -> str:
    return _EXAMPLES.get(kind, f"cast(1 as {kind.replace(',', ', ')})")
