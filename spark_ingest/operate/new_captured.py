"""A captured table's source, models and their YAML, written into a dbt project."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_ingest.connect.broker import Broker
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import ConfigurationError
from spark_ingest.operate import captured_files as files
from spark_ingest.operate.captured_columns import singular
from spark_ingest.operate.captured_schema import CapturedTable, read_table, topic_of
from spark_ingest.operate.yaml_places import (
    compose,
    last_line,
    parse,
    scalar,
    value,
    with_lines,
)

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)")
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
    names = _names(project, wanted)
    refuse_what_exists(project, names)
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


def _names(project: Path, wanted: Wanted) -> files.Names:
    source, _, table = wanted.stream.partition(".")
    domain = wanted.domain or _domain_of(project, source)
    for name in (source, table, domain):
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{wanted.stream!r}: name source and table like moma.artists, in lower case "
                "with underscores; a topic of another name is given with --topic"
            )
    return files.Names(source, table, domain, singular(table))


def _domain_of(project: Path, source: str) -> str:
    histories = (project / "models" / "intermediate").glob(
        f"*/int_{source}__*_history.sql"
    )
    folders = {file.parent.name for file in histories}
    return folders.pop() if len(folders) == 1 else source


def refuse_what_exists(project: Path, names: files.Names) -> None:
    """Stop where the source table or one of its models is there.

    Raises:
        ConfigurationError: It is; the text names the file.
    """
    there = [
        *(f for f in _yamls(project) if _has_table(compose(f.read_text()), names)),
        *(
            file
            for model in (names.staging, names.history, names.state)
            for file in sorted((project / "models").rglob(f"{model}.*"))
        ),
    ]
    if there:
        told = ", ".join(str(file.relative_to(project)) for file in there)
        raise ConfigurationError(
            f"{names.stream} is there already ({told}): nothing was changed"
        )


def planned_files(
    project: Path, names: files.Names, table: CapturedTable
) -> dict[Path, str]:
    """All files that a captured table adds or changes, with their text.

    Raises:
        ConfigurationError: A file of the project has no place for what belongs there.
    """
    docs = files.Docs(_blocks(project), _described(project))
    docs.say(
        f"{names.source}__{names.table}",
        f"One row per record of the topic `{table.topic}`, as it came: a change of a row of "
        f"the table {names.table}, or the tombstone that follows a delete.",
    )
    staging = Path("models") / "staging" / names.source
    histories = Path("models") / "intermediate" / names.domain
    block = files.source_block(names, table, docs)
    planned = {
        **_sources(project, names, table, block, staging),
        staging / f"{names.staging}.sql": files.staging_sql(names, table),
        staging / f"{names.staging}.yml": files.staging_yaml(names, table, docs),
        histories / f"{names.history}.sql": files.history_sql(names, table),
        histories / f"{names.history}.yml": files.history_yaml(names, table, docs),
        histories / f"{names.state}.sql": files.state_sql(names),
        histories / f"{names.state}.yml": files.state_yaml(names, table, docs),
    }
    said = staging / f"_{names.source}__docs.md"
    before = _text(project / said)
    planned[said] = (f"{before}\n" if before else "") + files.docs_text(docs)
    planned |= _owners(project, names)
    planned |= _compared(project, names)
    return planned


def write_files(project: Path, planned: dict[Path, str]) -> None:
    """Write what was planned."""
    for path, text in planned.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _sources(
    project: Path,
    names: files.Names,
    table: CapturedTable,
    block: str,
    folder: Path,
) -> dict[Path, str]:
    for file in _yamls(project):
        text = file.read_text()
        for source in getattr(value(compose(text), "sources"), "value", ()):
            if scalar(source, "name") != names.source:
                continue
            tables = value(source, "tables")
            if tables is None or tables.flow_style or not tables.value:
                raise ConfigurationError(
                    f"{file.relative_to(project)}: the tables of {names.source} do not stand "
                    "in lines of their own: write them so first"
                )
            deeper = tables.value[0].start_mark.column - len("- ")
            moved = re.sub(r"^ {6}(?=.)", " " * deeper, block, flags=re.MULTILINE)
            changed = with_lines(text, last_line(tables) + 1, moved)
            _check_added(file, text, changed, names)
            return {file.relative_to(project): changed}
    return {
        folder / f"_{names.source}__sources.yml": files.new_sources(names, table, block)
    }


def _check_added(file: Path, old: str, changed: str, names: files.Names) -> None:
    """Refuse a change that is more than the table added at the end of its source."""
    after = parse(changed)
    for source in after["sources"]:
        if source["name"] == names.source and source["tables"]:
            added = source["tables"].pop()
            if added.get("name") == names.table and after == parse(old):
                return
    raise ConfigurationError(
        f"{file}: no place for {names.stream} could be found: add it by hand"
    )


def _owners(project: Path, names: files.Names) -> dict[Path, str]:
    """The project's file with an owner for each new folder of models."""
    path = Path("dbt_project.yml")
    text = old = _text(project / path)
    for layer, folder in (("staging", names.source), ("intermediate", names.domain)):
        root = compose(text)
        name = scalar(root, "name")
        place = value(value(value(root, "models"), name), layer)
        if place is None or place.flow_style:
            raise ConfigurationError(
                f"{path} has no models.{name}.{layer}: add it, with an owner for {folder}"
            )
        if value(place, folder) is None:
            indent = " " * place.value[0][0].start_mark.column
            line = f"{indent}{folder}: {{+meta: {{owner: {names.domain}}}}}\n"
            text = with_lines(text, last_line(place) + 1, line)
    return {} if text == old else {path: text}


def _compared(project: Path, names: files.Names) -> dict[Path, str]:
    """The model that reads all histories, with the new one: it is compared with its database."""
    text = _text(project / _HISTORIES)
    end = "} %}\n"
    if text.count(end) != 1:
        raise ConfigurationError(
            f"{_HISTORIES} does not list histories line by line: add {names.history} by hand"
        )
    line = f'    "{names.stream}": ref("{names.history}"),\n'
    return {_HISTORIES: text.replace(end, line + end)}


def _has_table(root: Any, names: files.Names) -> bool:
    return any(
        scalar(source, "name") == names.source and scalar(table, "name") == names.table
        for source in getattr(value(root, "sources"), "value", ())
        for table in getattr(value(source, "tables"), "value", ())
    )


def _blocks(project: Path) -> list[str]:
    found = sorted((project / "models").rglob("*.md"))
    return [name for file in found for name in _BLOCK.findall(file.read_text())]


def _described(project: Path) -> dict[str, str]:
    """What models say of their columns, as it stands in YAML."""
    said: dict[str, str] = {}
    for file in _yamls(project):
        for model in (parse(file.read_text()) or {}).get("models") or ():
            for column in model.get("columns", ()):
                text = " ".join(str(column.get("description", "")).split())
                if text:
                    said.setdefault(
                        column["name"], json.dumps(text, ensure_ascii=False)
                    )
    return said


def _yamls(project: Path) -> Sequence[Path]:
    return sorted((project / "models").rglob("*.yml"))


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""
