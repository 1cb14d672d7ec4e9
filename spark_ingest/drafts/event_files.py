"""The text of the dbt files of an event stream, in the style of the existing ones."""

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
# An example value of each type in bronze.
_EXAMPLES = {
    "string": "'x'",
    "boolean": "true",
    "date": "date'2026-01-01'",
    "timestamp": "timestamp'2026-01-01 10:00:00'",
    "timestamp_ntz": "timestamp_ntz'2026-01-01 10:00:00'",
}


def added_names() -> set[str]:
    """The columns of the model besides those of the events."""
    return {"record_key", "is_tombstone", *_METADATA}


def source_description(names: Names) -> str:
    """The description of a new source."""
    return f"The events of {names.source}, each a record of a topic."


def staging_sql(names: Names, stream: EventStream) -> str:
    """The SQL of the staging model: every record, renamed and cast."""
    groups = grouped(stream.columns, ["keys", "flags"])
    return rendered("event_staging.sql", names=names, groups=groups)


def staging_yaml(names: Names, stream: EventStream, docs: Docs) -> str:
    """The YAML of the staging model with its unit test: a record, a duplicate, a tombstone."""
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
