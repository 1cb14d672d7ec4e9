"""Columns added to a dbt source in its YAML file, every other letter of it left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from spark_ingest.errors import ConfigurationError
from spark_ingest.operate.column_agreement import NewColumn

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_<>(),:]*")


def add_columns(file: Path, name: str, new: Sequence[NewColumn]) -> None:
    """List columns that a source's table lacks, behind its last one that is no metadata.

    Args:
        file: The YAML.
        name: ``<source>.<table>``.
        new: What to add, in order.

    Raises:
        ConfigurationError: The file does not declare the table in lines of its own.
    """
    text = file.read_text()
    table = _table(yaml.compose(text), name)
    if table is None:
        raise ConfigurationError(f"{file} does not declare the source {name}")
    lines = text.splitlines(keepends=True)
    columns = _value(table, "columns")
    if columns is None:
        indent = " " * table.value[0][0].start_mark.column
        at = _last_line(table) + 1
        added = [f"{indent}columns:\n", *_spelled(new, f"{indent}  ")]
    elif columns.flow_style or not columns.value:
        raise ConfigurationError(
            f"{file}: the columns of {name} stand in one line: give each its own first"
        )
    else:
        items = columns.value
        indent = " " * (items[0].start_mark.column - len("- "))
        at = _last_line(_before_metadata(items)) + 1
        added = _spelled(new, indent)
    if at > 0 and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    changed = "".join([*lines[:at], *added, *lines[at:]])
    _check(file, text, changed, name, new)
    file.write_text(changed)


def _table(root: Any, name: str) -> Any:
    source, _, table = name.partition(".")
    for each in getattr(_value(root, "sources"), "value", ()):
        if _scalar(each, "name") != source:
            continue
        for found in getattr(_value(each, "tables"), "value", ()):
            if _scalar(found, "name") == table:
                return found
    return None


def _value(mapping: Any, key: str) -> Any:
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next((value for name, value in mapping.value if name.value == key), None)


def _scalar(mapping: Any, key: str) -> Any:
    return getattr(_value(mapping, key), "value", None)


def _before_metadata(items: Sequence[Any]) -> Any:
    """The last column whose name does not begin like metadata; the last of all if none."""
    own = [
        item for item in items if not str(_scalar(item, "name") or "").startswith("_")
    ]
    return (own or items)[-1]


def _last_line(node: Any) -> int:
    """The line, from 0, on which a node's last word stands."""
    if isinstance(node, yaml.ScalarNode):
        mark = node.end_mark
        if mark.column == 0 and mark.line > node.start_mark.line:
            # Of a text in a block, the end is where the next thing begins.
            body = node.value.rstrip("\n").splitlines() or [""]
            return int(min(mark.line - 1, node.start_mark.line + max(len(body), 1)))
        return int(mark.line)
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    else:
        inner = node.value
    if node.flow_style or not inner:
        return int(node.end_mark.line)
    return max(_last_line(part) for part in inner)


def _spelled(new: Sequence[NewColumn], indent: str) -> list[str]:
    lines = []
    for column in new:
        # dbt would take it for Jinja.
        said = column.description.replace("{{", "{ {").replace("{%", "{ %")
        kind = column.data_type
        if not _PLAIN.fullmatch(kind):
            kind = json.dumps(kind)
        lines += [
            f"{indent}- name: {column.name}\n",
            f"{indent}  description: {json.dumps(said, ensure_ascii=False)}\n",
            f"{indent}  data_type: {kind}\n",
        ]
    return lines


def _check(
    file: Path, old: str, changed: str, name: str, new: Sequence[NewColumn]
) -> None:
    """Refuse a change that is more than the columns added."""

    def columns(text: str) -> tuple[dict[str, Any], Any]:
        root = yaml.safe_load(text)
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
        raise ConfigurationError(
            f"{file}: no place for the columns of {name} could be found: add them by hand"
        )
