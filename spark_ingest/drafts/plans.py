"""Plan the dbt files of a captured table or an event stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from spark_ingest.avro.schema import WriterSchema
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.drafts import captured_files, event_files
from spark_ingest.drafts.captured_schema import CHANGE_ABSENT, CapturedTable, read_table, topic_of
from spark_ingest.drafts.csv_schema import read_shape
from spark_ingest.drafts.event_schema import ABSENT, EventStream, read_events
from spark_ingest.drafts.model_text import Names
from spark_ingest.drafts.project_files import (
    check_is_new,
    checked_names,
    docs_of,
    with_docs,
    with_models,
    with_owners,
    with_table,
)
from spark_ingest.drafts.text_file import not_utf8, open_text
from spark_ingest.errors import ConfigurationError

_HISTORIES = Path("models/intermediate/ops/int_ops__captured_rows_moved.sql")
Read = TypeVar("Read", CapturedTable, EventStream)


@dataclass(frozen=True)
class DraftOptions:
    """The options of ``new-captured`` and ``new-stream``.

    Attributes:
        stream: ``<source>.<table>`` in dbt.
        topic: The topic; None for the one whose name ends with the table's or, with a CSV file,
            ``stream``.
        key: Primary-key columns of a captured table; empty for the fields of the record keys.
        domain: The owner and, for a captured table, the folder of its history; None for that of
            the source's other histories, or the source's name.
    """

    stream: str
    topic: str | None = None
    key: tuple[str, ...] = ()
    domain: str | None = None


@dataclass(frozen=True)
class Planned(Generic[Read]):
    """The planned files.

    Attributes:
        read: The table or stream from the schemas.
        files: Text of new and changed files by path, relative to the project.
    """

    read: Read
    files: dict[Path, str]


def plan_captured(
    project: Path, options: DraftOptions, registry: SchemaRegistry, broker: Broker
) -> Planned[CapturedTable]:
    """Plan the files of a captured table.

    Raises:
        ConfigurationError: A name is invalid, the table exists already, its topic or schemas do
            not exist, or are not of a captured table.
        ServiceUnavailable: The registry or the broker does not answer.
    """

    def read(names: Names) -> CapturedTable:
        topic = _topic(options, names, registry, broker, CHANGE_ABSENT)
        return read_table(
            topic,
            registry.subject_schemas(f"{topic}-value"),
            registry.subject_schemas(f"{topic}-key"),
            options.key,
            names.entity,
            taken=captured_files.added_names(),
            beside=captured_files.names_of_changes(),
        )

    return _plan(project, options, read, is_captured=True)


def plan_of_topic(
    project: Path, options: DraftOptions, registry: SchemaRegistry, broker: Broker
) -> Planned[EventStream]:
    """Plan the files of a stream with an existing topic.

    Raises:
        ConfigurationError: A name is invalid, the stream exists already, or its topic or schemas
            do not exist.
        ServiceUnavailable: The registry or the broker does not answer.
    """

    def read(names: Names) -> EventStream:
        topic = _topic(options, names, registry, broker, ABSENT)
        return read_events(
            topic,
            registry.subject_schemas(f"{topic}-value"),
            registry.subject_schemas(f"{topic}-key"),
            names.entity,
            event_files.added_names(),
        )

    return _plan(project, options, read)


def plan_of_csv(project: Path, options: DraftOptions, csv: Path, key: str) -> Planned[EventStream]:
    """Plan the files of a stream from a CSV file; ``key`` is the column with the record key.

    Raises:
        ConfigurationError: A name is invalid, the stream exists already, or the file is invalid.
    """

    def read(names: Names) -> EventStream:
        topic = options.topic or names.stream
        with open_text(csv) as text:
            try:
                shape = read_shape(text, str(csv), topic, key)
            except UnicodeDecodeError as error:
                not_utf8(str(csv), error)
        schemas = [WriterSchema(1, shape.value)], [WriterSchema(2, shape.key)]
        return read_events(topic, *schemas, names.entity, event_files.added_names())

    return _plan(project, options, read)


def models_of(names: Names) -> list[str]:
    """The models of a captured table."""
    return [names.staging, names.history, names.state]


def planned_files(
    project: Path, names: Names, read: CapturedTable | EventStream
) -> dict[Path, str]:
    """All new and changed files for a table, with their text.

    Raises:
        ConfigurationError: A file of the project does not have the expected structure.
    """
    docs = docs_of(project)
    description = f"One row per record of the topic `{read.topic}`"
    staging = Path("models") / "staging" / names.source
    if isinstance(read, EventStream):
        docs.define(f"{names.source}__{names.table}", f"{description}.")
        layers = {"staging": names.source}
        files = {
            **with_table(project, names, event_files.source_description(names), read, docs),
            staging / f"{names.staging}.sql": event_files.staging_sql(names, read),
            staging / f"{names.staging}.yml": event_files.staging_yaml(names, read, docs),
        }
    else:
        docs.define(
            f"{names.source}__{names.table}",
            f"{description}: a change of a row of the table {names.table}, or the tombstone "
            "after a delete.",
        )
        layers = {"staging": names.source, "intermediate": names.domain}
        histories = Path("models") / "intermediate" / names.domain
        files = {
            **with_table(
                project, names, captured_files.source_description(names, read), read, docs
            ),
            **{
                (staging if model == names.staging else histories) / f"{model}.sql": text
                for model, text in captured_files.models_sql(names, read).items()
            },
            **with_models(project, names, read, docs),
        }
    files |= with_docs(project, names, docs)
    files |= with_owners(project, names, layers)
    return files if isinstance(read, EventStream) else files | _compared(project, names)


def _plan(
    project: Path, options: DraftOptions, read: Callable[[Names], Read], is_captured: bool = False
) -> Planned[Read]:
    source = options.stream.partition(".")[0]
    histories = f"models/intermediate/*/int_{source}__*_history.sql"
    folders = {f.parent.name for f in project.glob(histories)} if is_captured else set()
    domain = folders.pop() if len(folders) == 1 else source
    names = checked_names(options.stream, options.domain or domain)
    check_is_new(project, names, models_of(names) if is_captured else [names.staging])
    found = read(names)
    return Planned(found, planned_files(project, names, found))


def _topic(
    options: DraftOptions, names: Names, registry: SchemaRegistry, broker: Broker, absent: str
) -> str:
    """The topic of the options, or the one found by the table's name."""
    topic = options.topic or topic_of(registry.subjects(), names.source, names.table, absent)
    if broker.topic(topic) is None:
        raise ConfigurationError(f"topic {topic} does not exist: {absent}")
    return topic


def _compared(project: Path, names: Names) -> dict[Path, str]:
    """The model over all histories with the new one, which `reconcile` compares."""
    file = project / _HISTORIES
    text = file.read_text() if file.exists() else ""
    end = "} %}\n"
    if text.count(end) != 1:
        raise ConfigurationError(
            f"{_HISTORIES} does not have one history per line: add {names.history} by hand"
        )
    line = f'    "{names.stream}": ref("{names.history}"),\n'
    return {_HISTORIES: text.replace(end, line + end)}
