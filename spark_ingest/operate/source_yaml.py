"""Add columns to a dbt source in its YAML file without other changes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from spark_ingest.drafts.yaml_places import compose, last_line, parse, scalar, value, with_lines
from spark_ingest.errors import ConfigurationError
from spark_ingest.operate.column_agreement import NewColumn

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_<>(),:]*")


def add_columns(file: Path, name: str, new: Sequence[NewColumn]) -> None:
    """Add missing columns to a source table, after its last column that is not metadata.

    ``name`` is ``<source>.<table>``.

    Raises:
        ConfigurationError: The file does not declare the table, or not in block style.
    """
    text = file.read_text()
    table = _table(compose(text), name)
    if table is None:
        raise ConfigurationError(f"{file} does not declare the source {name}")
    columns = value(table, "columns")
    if columns is None:
        indent = " " * table.value[0][0].start_mark.column
        at = last_line(table) + 1
        added = [f"{indent}columns:\n", *_yaml_lines(new, f"{indent}  ")]
    elif columns.flow_style or not columns.value:
        raise ConfigurationError(
            f"{file}: the columns of {name} are on one line: put each on its own line first"
        )
    else:
        items = columns.value
        indent = " " * (items[0].start_mark.column - len("- "))
        at = last_line(_before_metadata(items)) + 1
        added = _yaml_lines(new, indent)
    changed = with_lines(text, at, "".join(added))
    _check(file, text, changed, name, new)
    file.write_text(changed)


def _table(root: Any, name: str) -> Any:
    source, _, table = name.partition(".")
    for each in getattr(value(root, "sources"), "value", ()):
        if scalar(each, "name") != source:
            continue
        for found in getattr(value(each, "tables"), "value", ()):
            if scalar(found, "name") == table:
                return found
    return None


def _before_metadata(items: Sequence[Any]) -> Any:
    """The last column whose name does not begin with ``_``; the last of all if none."""
    own = [item for item in items if not str(scalar(item, "name") or "").startswith("_")]
    return (own or items)[-1]


def _yaml_lines(new: Sequence[NewColumn], indent: str) -> list[str]:
    lines = []
    for column in new:
        # dbt would render it as Jinja.
        description = column.description.replace("{{", "{ {").replace("{%", "{ %")
        kind = column.data_type
        if not _PLAIN.fullmatch(kind):
            kind = json.dumps(kind)
        lines += [
            f"{indent}- name: {column.name}\n",
            f"{indent}  description: {json.dumps(description, ensure_ascii=False)}\n",
            f"{indent}  data_type: {kind}\n",
        ]
    return lines


def _check(file: Path, old: str, changed: str, name: str, new: Sequence[NewColumn]) -> None:
    """Check that the change only adds the columns.

    Raises:
        ConfigurationError: It changes anything else.
    """

    def columns(text: str) -> tuple[dict[str, Any], Any]:
        root = parse(text)
        source, _, table = name.partition(".")
        for each in root["sources"]:
            for found in each.get("tables", ()) if each["name"] == source else ():
                if found["name"] == table:
                    return {c["name"]: c for c in found.pop("columns", ())}, root
        return {}, root

    before, rest = columns(old)
    try:
        after, same = columns(changed)
    except yaml.YAMLError:
        after, same = {}, None
    names = [column.name for column in new]
    kept = {key: value for key, value in after.items() if key not in names}
    if same != rest or kept != before or not set(names) <= set(after):
        raise ConfigurationError(f"{file}: cannot add the columns of {name}: add them by hand")
