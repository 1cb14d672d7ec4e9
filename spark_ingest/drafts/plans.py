"""What a captured table or a stream of events takes in a dbt project, written into it."""

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
    checked_names,
    docs_of,
    refuse_what_exists,
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
    """What somebody asks for.

    Attributes:
        stream: ``<source>.<table>`` as dbt shall name it.
        topic: Its topic; None finds the one whose name ends like the table, and is the
            stream's own name with a file.
        key: The columns that name a row of a captured table; empty for those of the records' keys.
        domain: The owner, and of a captured table the folder of its history; None for that of
            the source's other histories, or the source's name.
    """

    stream: str
    topic: str | None = None
    key: tuple[str, ...] = ()
    domain: str | None = None


@dataclass(frozen=True)
class Planned(Generic[Read]):
    """What there is to write.

    Attributes:
        read: What the schemas say.
        files: Text by path, relative to the project; of those that are there, too.
    """

    read: Read
    files: dict[Path, str]


def plan_captured(
    project: Path, options: DraftOptions, registry: SchemaRegistry, broker: Broker
) -> Planned[CapturedTable]:
    """The files of a captured table that the project does not have yet.

    Raises:
        ConfigurationError: A name is none, the table is there already, its topic or schemas
            are not, or they are of no captured table.
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
    """The files of a stream whose topic there is.

    Raises:
        ConfigurationError: A name is none, the stream is there already, or its topic or schemas
            are not.
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
    """The files of a stream that a CSV's rows will become; ``key`` names the records' key.

    Raises:
        ConfigurationError: A name is none, the stream is there already, or the file cannot be
            used.
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
    """All files that a table adds or changes, with their text.

    Raises:
        ConfigurationError: A file of the project has no place for what belongs there.
    """
    docs = docs_of(project)
    said = f"One row per record of the topic `{read.topic}`, as it came"
    staging = Path("models") / "staging" / names.source
    if isinstance(read, EventStream):
        docs.say(f"{names.source}__{names.table}", f"{said}.")
        layers = {"staging": names.source}
        files = {
            **with_table(project, names, event_files.said_of(names), read, docs),
            staging / f"{names.staging}.sql": event_files.staging_sql(names, read),
            staging / f"{names.staging}.yml": event_files.staging_yaml(names, read, docs),
        }
    else:
        docs.say(
            f"{names.source}__{names.table}",
            f"{said}: a change of a row of the table {names.table}, or the tombstone that "
            "follows a delete.",
        )
        layers = {"staging": names.source, "intermediate": names.domain}
        histories = Path("models") / "intermediate" / names.domain
        files = {
            **with_table(project, names, captured_files.said_of(names, read), read, docs),
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
    refuse_what_exists(project, names, models_of(names) if is_captured else [names.staging])
    found = read(names)
    return Planned(found, planned_files(project, names, found))


def _topic(
    options: DraftOptions, names: Names, registry: SchemaRegistry, broker: Broker, absent: str
) -> str:
    """The topic that is asked for, or found by the table's name."""
    topic = options.topic or topic_of(registry.subjects(), names.source, names.table, absent)
    if broker.topic(topic) is None:
        raise ConfigurationError(f"there is no topic {topic}: {absent}")
    return topic


def _compared(project: Path, names: Names) -> dict[Path, str]:
    """The model that reads all histories, with the new one: it is compared with its database."""
    file = project / _HISTORIES
    text = file.read_text() if file.exists() else ""
    end = "} %}\n"
    if text.count(end) != 1:
        raise ConfigurationError(
            f"{_HISTORIES} does not list histories line by line: add {names.history} by hand"
        )
    line = f'    "{names.stream}": ref("{names.history}"),\n'
    return {_HISTORIES: text.replace(end, line + end)}
