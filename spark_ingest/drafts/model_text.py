"""Names, descriptions and columns in generated dbt files."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from spark_ingest.drafts.captured_columns import GROUPS, CapturedColumn
from spark_ingest.drafts.yaml_places import parse

_SQL_WIDTH = 88
_YAML_WIDTH = 100
# Placeholder for a non-breaking blank.
_HARD = "\0"


@dataclass(frozen=True)
class Names:
    """The names of a source table and its models.

    Attributes:
        source: The dbt source.
        domain: The folder of its history, and the owner.
        entity: The name of one row, such as ``film_actor``.
    """

    source: str
    table: str
    domain: str
    entity: str

    @property
    def stream(self) -> str:
        return f"{self.source}.{self.table}"

    @property
    def staging(self) -> str:
        return f"stg_{self.source}__{self.table}"

    @property
    def history(self) -> str:
        return f"int_{self.source}__{self.table}_history"

    @property
    def state(self) -> str:
        return f"int_{self.source}__{self.table}_current"


class Docs:
    """The docs blocks of columns: existing and new ones.

    Attributes:
        added: The new blocks by name, in order.
    """

    def __init__(self, there: Iterable[str], described: Mapping[str, str]) -> None:
        """Start with the existing docs of the project.

        ``there`` has the names of all its blocks, ``described`` the descriptions of model columns
        by name; a name has the same meaning in all models.
        """
        self._there = set(there)
        self._described = described
        self.added: dict[str, str] = {}

    @staticmethod
    def reference(block: str) -> str:
        return f"\"{{{{ doc('{block}') }}}}\""

    def define(self, block: str, text: str) -> str:
        """A reference to a block, which is added if it does not exist."""
        if block not in self._there:
            self.added.setdefault(block, text)
        return self.reference(block)

    def of(self, column: CapturedColumn) -> str:
        """The description of a column."""
        known = self._described.get(column.name)
        if known is not None:
            return known
        return self.define(column.name, column.doc)

    def of_field(self, name: str, writer: str = "the connector") -> str:
        """The description of a field that the connector adds or the models exclude."""
        block = f"captured{name}"
        if name.startswith("__") and block in self._there:
            return self.reference(block)
        plain = name.removeprefix("__")
        return json.dumps(f"`{plain}`, as {writer} writes it.", ensure_ascii=False)

    def text(self) -> str:
        """The text of the new blocks."""
        return "\n".join(
            f"{{% docs {block} %}}\n{textwrap.fill(text, 92)}\n{{% enddocs %}}\n"
            for block, text in self.added.items()
        )


def rendered(pattern: str, **values: object) -> str:
    """Render a template of the folder ``patterns``."""
    return _PATTERNS.get_template(f"{pattern}.jinja").render(values)


def grouped(
    columns: Iterable[CapturedColumn], always: Iterable[str] = ()
) -> list[tuple[str, list[CapturedColumn]]]:
    """The columns by group, in the order of the groups; empty groups only if in ``always``."""
    every = list(columns)
    found = [(group, [c for c in every if c.group == group]) for group in GROUPS]
    return [(group, inside) for group, inside in found if inside or group in always]


def ordered(columns: Iterable[CapturedColumn]) -> list[CapturedColumn]:
    """The columns in the order of their groups."""
    return [column for _, inside in grouped(columns) for column in inside]


def anchored(text: str) -> dict[str, Any]:
    """The values of the anchors of a YAML text, by name."""
    names = re.findall(r"^(?: *- *)?(?:[\w ]*: )? *&(\w+)", text, re.MULTILINE)
    aliases = ", ".join(f"{name}: *{name}" for name in names)
    found: dict[str, Any] = parse(f"{text}\nanchored: {{{aliases}}}\n")["anchored"]
    return found


def flow_column(anchor: str | None, fields: Mapping[str, str]) -> str:
    """An item of a column list in flow style, in as few lines as possible."""
    inner = ", ".join(_hard(f"{key}: {value}") for key, value in fields.items())
    named = f"      &{anchor}" if anchor else "     "
    line = f"{named} {{{inner}}},"
    if len(line) <= _YAML_WIDTH:
        return line.replace(_HARD, " ")
    body = _filled(f"{{{inner}}},", 6, 7, _YAML_WIDTH)
    return f"{named}\n{body}" if anchor else body


def wrapped(values: Iterable[str], indent: int, width: int) -> str:
    """Comma-separated values in lines, with line breaks only between them."""
    text = ", ".join(value.replace(" ", _HARD) for value in values)
    return _filled(text, indent, indent, width)


def _hard(part: str) -> str:
    """A part without line breaks, unless it is too long."""
    return part.replace(" ", _HARD) if len(part) < _YAML_WIDTH - 20 else part


def _filled(text: str, first: int, others: int, width: int) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * others,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_HARD, " ")


def _selected(column: CapturedColumn) -> str:
    """The lines of a column in the last `select` of a model."""
    line = f"        {column.sql},"
    if len(line) <= _SQL_WIDTH:
        return line
    expression, _, name = column.sql.rpartition(" as ")
    return f"        {expression}\n            as {name},"


def _described(text: str, indent: int) -> str:
    """A plain text as a description with an indent: on one line, or folded."""
    line = len("description: ") + indent + len(text)
    if ": " not in text and line <= _YAML_WIDTH:
        return text
    return f">-\n{_filled(text, indent + 2, indent + 2, _YAML_WIDTH - 6)}"


def _folded(quoted: str, indent: int) -> str:
    """The same for a quoted text."""
    if len("description: ") + indent + len(quoted) <= _YAML_WIDTH:
        return quoted
    return f">-\n{_filled(json.loads(quoted), indent + 2, indent + 2, _YAML_WIDTH - 6)}"


_PATTERNS = Environment(
    # Different from the delimiters in the generated Jinja.
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    comment_start_string="<#",
    comment_end_string="#>",
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
    autoescape=select_autoescape(),
    loader=FileSystemLoader(Path(__file__).with_name("patterns")),
)
_PATTERNS.filters |= {
    "described": _described,
    "flow": lambda text, indent: f"{_filled(text, indent, indent, _YAML_WIDTH)}\n",
    "folded": _folded,
    "selected": _selected,
    "wrapped": wrapped,
}
