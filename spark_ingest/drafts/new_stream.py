"""A stream's source, its staging model and their YAML, written into a dbt project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spark_ingest.avro.schema import WriterSchema
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.drafts import event_files as files
from spark_ingest.drafts.captured_schema import topic_of
from spark_ingest.drafts.csv_schema import read_shape
from spark_ingest.drafts.event_schema import ABSENT, EventStream, read_events
from spark_ingest.drafts.model_text import Names
from spark_ingest.drafts.project_files import (
    checked_names,
    docs_of,
    refuse_what_exists,
    with_docs,
    with_owners,
    with_table,
)
from spark_ingest.drafts.text_file import not_utf8, open_text
from spark_ingest.errors import ConfigurationError


@dataclass(frozen=True)
class Wanted:
    """What somebody asks for.

    Attributes:
        stream: ``<source>.<table>`` as dbt shall name it.
        topic: Its topic; None finds the one whose name ends like the table, and is the
            stream's own name with a file.
        domain: The owner; None for the source's name.
    """

    stream: str
    topic: str | None = None
    domain: str | None = None


@dataclass(frozen=True)
class Planned:
    """What there is to write.

    Attributes:
        stream: What the schemas say.
        files: Text by path, relative to the project; of those that are there, too.
    """

    stream: EventStream
    files: dict[Path, str]


def plan_of_topic(
    project: Path, wanted: Wanted, registry: SchemaRegistry, broker: Broker
) -> Planned:
    """The files of a stream whose topic there is.

    Args:
        project: The dbt project.
        wanted: What is asked for.
        registry: Where the topic's schemas are.
        broker: Where the topic is.

    Raises:
        ConfigurationError: A name is none, the stream is there already, or its topic or schemas
            are not.
        ServiceUnavailable: The registry or the broker does not answer.
    """

    def read(names: Names) -> EventStream:
        topic = wanted.topic
        if topic is None:
            topic = topic_of(registry.subjects(), names.source, names.table, ABSENT)
        if broker.topic(topic) is None:
            raise ConfigurationError(f"there is no topic {topic}: {ABSENT}")
        return read_events(
            topic,
            registry.subject_schemas(f"{topic}-value"),
            registry.subject_schemas(f"{topic}-key"),
            names.entity,
            files.added_names(),
        )

    return _plan(project, wanted, read)


def plan_of_csv(project: Path, wanted: Wanted, csv: Path, key: str) -> Planned:
    """The files of a stream that a CSV's rows will become.

    Args:
        project: The dbt project.
        wanted: What is asked for.
        csv: The file.
        key: The column that is the records' key.

    Raises:
        ConfigurationError: A name is none, the stream is there already, or the file cannot be
            used.
    """

    def read(names: Names) -> EventStream:
        topic = wanted.topic or names.stream
        with open_text(csv) as text:
            try:
                shape = read_shape(text, str(csv), topic, key)
            except UnicodeDecodeError as error:
                not_utf8(str(csv), error)
        schemas = [WriterSchema(1, shape.value)], [WriterSchema(2, shape.key)]
        return read_events(topic, *schemas, names.entity, files.added_names())

    return _plan(project, wanted, read)


def _plan(
    project: Path, wanted: Wanted, read: Callable[[Names], EventStream]
) -> Planned:
    source = wanted.stream.partition(".")[0]
    names = checked_names(wanted.stream, wanted.domain or source)
    refuse_what_exists(project, names, [names.staging])
    stream = read(names)
    return Planned(stream, planned_files(project, names, stream))


def planned_files(project: Path, names: Names, stream: EventStream) -> dict[Path, str]:
    """All files that a stream adds or changes, with their text.

    Raises:
        ConfigurationError: A file of the project has no place for what belongs there.
    """
    docs = docs_of(project)
    docs.say(
        f"{names.source}__{names.table}",
        f"One row per record of the topic `{stream.topic}`, as it came.",
    )
    staging = Path("models") / "staging" / names.source
    return {
        **with_table(project, names, files.said_of(names), stream, docs),
        staging / f"{names.staging}.sql": files.staging_sql(names, stream),
        staging / f"{names.staging}.yml": files.staging_yaml(names, stream, docs),
        **with_docs(project, names, docs),
        **with_owners(project, names, {"staging": names.source}),
    }
