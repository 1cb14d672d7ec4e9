"""A captured table's source, models and their YAML, written into a dbt project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spark_ingest.connect.broker import Broker
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.drafts import captured_files as files
from spark_ingest.drafts.captured_schema import CapturedTable, read_table, topic_of
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
from spark_ingest.errors import ConfigurationError

_HISTORIES = Path("models/intermediate/ops/int_ops__captured_rows_moved.sql")


@dataclass(frozen=True)
class Wanted:
    """What somebody asks for.

    Attributes:
        stream: ``<source>.<table>`` as dbt shall name it.
        topic: Its topic; None finds the one whose name ends like the table.
        key: The columns that name a row; empty for those of the records' keys.
        domain: The folder of its history; None for that of the source's other histories, or
            the source's name.
    """

    stream: str
    topic: str | None = None
    key: tuple[str, ...] = ()
    domain: str | None = None


@dataclass(frozen=True)
class Planned:
    """What there is to write.

    Attributes:
        table: What the schemas say.
        files: Text by path, relative to the project; of those that are there, too.
    """

    table: CapturedTable
    files: dict[Path, str]


def plan_captured(
    project: Path, wanted: Wanted, registry: SchemaRegistry, broker: Broker
) -> Planned:
    """The files of a captured table that the project does not have yet.

    Args:
        project: The dbt project.
        wanted: What is asked for.
        registry: Where the topic's schemas are.
        broker: Where the topic is.

    Raises:
        ConfigurationError: A name is none, the table is there already, its topic or schemas
            are not, or they are of no captured table.
        ServiceUnavailable: The registry or the broker does not answer.
    """
    source = wanted.stream.partition(".")[0]
    domain = wanted.domain or _domain_of(project, source)
    names = checked_names(wanted.stream, domain)
    refuse_what_exists(project, names, models_of(names))
    topic = wanted.topic or topic_of(registry.subjects(), names.source, names.table)
    if broker.topic(topic) is None:
        raise ConfigurationError(
            f"there is no topic {topic}: it comes with the table's first row or change"
        )
    table = read_table(
        topic,
        registry.subject_schemas(f"{topic}-value"),
        registry.subject_schemas(f"{topic}-key"),
        wanted.key,
        names.entity,
        taken=files.added_names(),
        beside=files.names_of_changes(),
    )
    return Planned(table, planned_files(project, names, table))


def models_of(names: Names) -> tuple[str, ...]:
    """The models of a captured table."""
    return names.staging, names.history, names.state


def _domain_of(project: Path, source: str) -> str:
    histories = (project / "models" / "intermediate").glob(
        f"*/int_{source}__*_history.sql"
    )
    folders = {file.parent.name for file in histories}
    return folders.pop() if len(folders) == 1 else source


def planned_files(project: Path, names: Names, table: CapturedTable) -> dict[Path, str]:
    """All files that a captured table adds or changes, with their text.

    Raises:
        ConfigurationError: A file of the project has no place for what belongs there.
    """
    docs = docs_of(project)
    docs.say(
        f"{names.source}__{names.table}",
        f"One row per record of the topic `{table.topic}`, as it came: a change of a row of "
        f"the table {names.table}, or the tombstone that follows a delete.",
    )
    folders = {
        names.staging: Path("models") / "staging" / names.source,
        **dict.fromkeys(
            (names.history, names.state), Path("models") / "intermediate" / names.domain
        ),
    }
    return {
        **with_table(project, names, files.said_of(names, table), table, docs),
        **{
            folders[model] / f"{model}.sql": text
            for model, text in files.models_sql(names, table).items()
        },
        **with_models(project, names, table, docs),
        **with_docs(project, names, docs),
        **with_owners(
            project, names, {"staging": names.source, "intermediate": names.domain}
        ),
        **_compared(project, names),
    }


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
