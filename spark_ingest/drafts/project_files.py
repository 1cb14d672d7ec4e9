"""Add to files of a dbt project without changing their existing text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from spark_ingest.drafts.captured_columns import singular
from spark_ingest.drafts.captured_files import models_yaml
from spark_ingest.drafts.captured_schema import CapturedTable
from spark_ingest.drafts.event_schema import EventStream
from spark_ingest.drafts.model_text import Docs, Names, anchored, rendered
from spark_ingest.drafts.yaml_places import compose, last_line, parse, scalar, value, with_lines
from spark_ingest.errors import ConfigurationError

_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_BLOCK = re.compile(r"\{%-?\s*docs\s+(\w+)")


def checked_names(stream: str, domain: str) -> Names:
    """The validated names of a table.

    ``stream`` is ``<source>.<table>``; ``domain`` is the folder of its history, and the owner.

    Raises:
        ConfigurationError: A name is invalid.
    """
    source, _, table = stream.partition(".")
    for name in (source, table, domain):
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{stream!r}: give source and table in lower case with underscores, such as "
                "moma.artists; give a topic with another name by --topic"
            )
    return Names(source, table, domain, singular(table))


def check_is_new(project: Path, names: Names, models: Sequence[str]) -> None:
    """Check that neither the source table nor one of its models exists.

    Raises:
        ConfigurationError: One exists; the message has the file.
    """
    existing = [
        *(f for f in _yamls(project) if _declares(parse(f.read_text()), names, models)),
        *(file for model in models for file in sorted((project / "models").rglob(f"{model}.*"))),
    ]
    if existing:
        listed = ", ".join(str(file.relative_to(project)) for file in existing)
        raise ConfigurationError(f"{names.stream} exists already ({listed}): nothing was changed")


def docs_of(project: Path) -> Docs:
    """The existing column descriptions of the project."""
    return Docs(_blocks(project), _described(project))


def with_docs(project: Path, names: Names, docs: Docs) -> dict[Path, str]:
    """The source's docs file with the new blocks; empty if there are none."""
    if not docs.added:
        return {}
    path = Path("models") / "staging" / names.source / f"_{names.source}__docs.md"
    before = _text(project / path)
    return {path: (f"{before}\n" if before else "") + docs.text()}


def with_table(
    project: Path, names: Names, description: str, read: CapturedTable | EventStream, docs: Docs
) -> dict[Path, str]:
    """The YAML of a source with the new table; a new file for a new source.

    ``description`` is for a new source.

    Raises:
        ConfigurationError: The source's file does not have the expected structure.
    """
    for file in _yamls(project):
        text = file.read_text()
        sources = (parse(text) or {}).get("sources", ())
        if all(source["name"] != names.source for source in sources):
            continue
        (source,) = (
            node
            for node in value(compose(text), "sources").value
            if scalar(node, "name") == names.source
        )
        tables = value(source, "tables")
        if tables is None or tables.flow_style or not tables.value:
            raise ConfigurationError(
                f"{file.relative_to(project)}: the tables of {names.source} are not in block "
                "style: put each on its own lines first"
            )
        deeper = tables.value[0].start_mark.column - len("- ")
        block = _source_table(names, read, docs, text)
        moved = re.sub(r"^ {6}(?=.)", " " * deeper, block, flags=re.MULTILINE)
        changed = with_lines(text, last_line(tables) + 1, moved)
        _check_added(file, text, changed, names)
        return {file.relative_to(project): changed}
    head = rendered("source_head.yml", names=names, description=description)
    file = Path("models") / "staging" / names.source / f"_{names.source}__sources.yml"
    return {file: head + _source_table(names, read, docs, head)}


def _source_table(names: Names, read: CapturedTable | EventStream, docs: Docs, there: str) -> str:
    """The table's item in the list of its source's tables, with aliases of existing anchors."""
    captured = read if isinstance(read, CapturedTable) else None
    is_envelope = captured is not None and captured.form == "envelope"
    described = {} if is_envelope else {column.source: column for column in read.columns}
    writer = "the connector" if captured else "the producer"
    columns = [
        (name, docs.of(described[name]) if name in described else docs.of_field(name, writer), kind)
        for name, kind in read.fields.items()
    ]
    if read.key_type:
        columns.append(("_key", docs.reference("ingest__key"), read.key_type))
    known = anchored(there)
    added = anchored(rendered("source_head.yml", names=names, description=""))
    return rendered(
        "source_table.yml",
        names=names,
        read=read,
        docs=docs,
        captured=captured,
        is_envelope=is_envelope,
        columns=columns,
        metadata=[(name, item, known.get(name) == item) for name, item in added.items()],
    )


def _check_added(file: Path, old: str, changed: str, names: Names) -> None:
    """Check that the change only appends the table to its source."""
    after = parse(changed)
    for source in after["sources"]:
        if source["name"] == names.source and source["tables"]:
            added = source["tables"].pop()
            if added.get("name") == names.table and after == parse(old):
                return
    raise ConfigurationError(f"{file}: cannot add {names.stream}: add it by hand")


def with_models(project: Path, names: Names, read: CapturedTable, docs: Docs) -> dict[Path, str]:
    """The YAML of a source's captured tables with the new one; a new file for the first one.

    Raises:
        ConfigurationError: The file does not end with its models, or lacks an anchor.
    """
    folder = Path("models") / "intermediate" / names.domain
    file = folder / f"_{names.source}__captured.yml"
    old = _text(project / file)
    new = models_yaml(names, read, docs, old)
    try:
        after = parse(new)
        added = [after["models"].pop()["name"] for _ in range(3)]
    except (yaml.YAMLError, IndexError):
        after, added = None, []
    is_last = added == [names.state, names.history, names.staging]
    if not is_last or (old and after != parse(old)):
        raise ConfigurationError(
            f"{file} does not end with its models, or lacks the anchors of the others "
            "(models/intermediate/*/_*__captured.yml): change it first"
        )
    return {file: new}


def with_owners(project: Path, names: Names, folders: Mapping[str, str]) -> dict[Path, str]:
    """The project file with an owner for each new folder of models; empty if none is new.

    ``folders`` are by layer; the domain of ``names`` is the owner.

    Raises:
        ConfigurationError: The file lacks a layer.
    """
    path = Path("dbt_project.yml")
    text = old = _text(project / path)
    for layer, folder in folders.items():
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


def write_files(project: Path, planned: dict[Path, str]) -> None:
    """Write the planned files."""
    for path, text in planned.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _declares(parsed: Any, names: Names, models: Sequence[str]) -> bool:
    """Whether a YAML declares the source table or one of its models."""
    return any(
        source["name"] == names.source and table["name"] == names.table
        for source in (parsed or {}).get("sources", ())
        for table in source.get("tables", ())
    ) or any(model["name"] in models for model in (parsed or {}).get("models") or ())


def _blocks(project: Path) -> list[str]:
    found = sorted((project / "models").rglob("*.md"))
    return [name for file in found for name in _BLOCK.findall(file.read_text())]


def _described(project: Path) -> dict[str, str]:
    """The descriptions of model columns by name, as quoted YAML."""
    found: dict[str, str] = {}
    for file in _yamls(project):
        for model in (parse(file.read_text()) or {}).get("models") or ():
            for column in model.get("columns", ()):
                text = " ".join(str(column.get("description", "")).split())
                if text:
                    found.setdefault(column["name"], json.dumps(text, ensure_ascii=False))
    return found


def _yamls(project: Path) -> Sequence[Path]:
    return sorted((project / "models").rglob("*.yml"))


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""
