"""What files of dbt have in common that a command writes: names, descriptions, columns."""

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
# A blank where no line is broken.
_HARD = "\0"


@dataclass(frozen=True)
class Names:
    """What the parts of a source table are called.

    Attributes:
        source: The dbt source.
        domain: The folder of its history, and the owner.
        entity: What one row is, like ``film_actor``.
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
    """What columns are, said once: in the blocks that are there, and in new ones.

    Attributes:
        added: The new blocks by name, in order.
    """

    def __init__(self, there: Iterable[str], described: Mapping[str, str]) -> None:
        """Begin with what the project says already.

        ``there`` has the names of all its blocks, ``described`` what its models say of their
        columns, by name: one name means one thing in all of them.
        """
        self._there = set(there)
        self._described = described
        self.added: dict[str, str] = {}

    @staticmethod
    def reference(block: str) -> str:
        return f"\"{{{{ doc('{block}') }}}}\""

    def say(self, block: str, text: str) -> str:
        """A reference to a block, which is added where it is not there."""
        if block not in self._there:
            self.added.setdefault(block, text)
        return self.reference(block)

    def of(self, column: CapturedColumn) -> str:
        """What describes a column."""
        known = self._described.get(column.name)
        if known is not None:
            return known
        return self.say(column.name, column.doc)

    def of_field(self, name: str, writer: str = "the connector") -> str:
        """What describes a field that the connector adds, or one that no model has."""
        block = f"captured{name}"
        if name.startswith("__") and block in self._there:
            return self.reference(block)
        plain = name.removeprefix("__")
        said = f"`{plain}`, as {writer} writes it."
        return json.dumps(said, ensure_ascii=False)

    def text(self) -> str:
        """The new blocks, one below the other."""
        return "\n".join(
            f"{{% docs {block} %}}\n{textwrap.fill(text, 92)}\n{{% enddocs %}}\n"
            for block, text in self.added.items()
        )


def rendered(pattern: str, **values: object) -> str:
    """The text of one of the patterns beside this module."""
    return _PATTERNS.get_template(f"{pattern}.jinja").render(values)


def grouped(
    columns: Iterable[CapturedColumn], always: Iterable[str] = ()
) -> list[tuple[str, list[CapturedColumn]]]:
    """The columns of each group that has some, or is there always, in the order of the groups."""
    every = list(columns)
    found = [(group, [c for c in every if c.group == group]) for group in GROUPS]
    return [(group, inside) for group, inside in found if inside or group in always]


def ordered(columns: Iterable[CapturedColumn]) -> list[CapturedColumn]:
    """The columns in the order of their groups."""
    return [column for _, inside in grouped(columns) for column in inside]


def anchored(text: str) -> dict[str, Any]:
    """What the anchors of a YAML text stand for, by their names."""
    names = re.findall(r"^(?: *- *)?(?:[\w ]*: )? *&(\w+)", text, re.MULTILINE)
    aliases = ", ".join(f"{name}: *{name}" for name in names)
    found: dict[str, Any] = parse(f"{text}\nanchored: {{{aliases}}}\n")["anchored"]
    return found


def flow_column(anchor: str | None, fields: Mapping[str, str]) -> str:
    """An item of a list of columns in brackets, in as few lines as it takes."""
    inner = ", ".join(_hard(f"{key}: {value}") for key, value in fields.items())
    named = f"      &{anchor}" if anchor else "     "
    line = f"{named} {{{inner}}},"
    if len(line) <= _YAML_WIDTH:
        return line.replace(_HARD, " ")
    body = _filled(f"{{{inner}}},", 6, 7, _YAML_WIDTH)
    return f"{named}\n{body}" if anchor else body


def wrapped(values: Iterable[str], indent: int, width: int) -> str:
    """Values in lines, none of them broken."""
    text = ", ".join(value.replace(" ", _HARD) for value in values)
    return _filled(text, indent, indent, width)


def _hard(part: str) -> str:
    """A part in which no line is broken, if it is not too long for that."""
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
    """What the last `select` of a model says of a column."""
    line = f"        {column.sql},"
    if len(line) <= _SQL_WIDTH:
        return line
    expression, _, name = column.sql.rpartition(" as ")
    return f"        {expression}\n            as {name},"


def _described(text: str, indent: int) -> str:
    """A plain text as a description so far from the left: in one line, or folded."""
    line = len("description: ") + indent + len(text)
    if ": " not in text and line <= _YAML_WIDTH:
        return text
    return f">-\n{_filled(text, indent + 2, indent + 2, _YAML_WIDTH - 6)}"


def _said(quoted: str, indent: int) -> str:
    """The same of a text that is quoted as YAML has it."""
    if len("description: ") + indent + len(quoted) <= _YAML_WIDTH:
        return quoted
    return f">-\n{_filled(json.loads(quoted), indent + 2, indent + 2, _YAML_WIDTH - 6)}"


_PATTERNS = Environment(
    # What dbt renders has the usual ones.
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
    "said": _said,
    "selected": _selected,
    "wrapped": wrapped,
}
