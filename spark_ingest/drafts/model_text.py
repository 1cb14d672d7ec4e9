"""What files of dbt have in common that a command writes: names, descriptions, columns."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from spark_ingest.drafts.captured_columns import GROUPS, CapturedColumn

# The columns that every model and source of a kind has, with their YAML.
_PATTERNS = Path(__file__).parent / "patterns"
WIDTH = 88
_YAML_WIDTH = 100
ITEM = re.compile(r"^ +- name: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Names:
    """What the parts of a source table are called.

    Attributes:
        source: The dbt source.
        table: Its table.
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

    @property
    def one(self) -> str:
        """One row, with its article."""
        said = self.entity.replace("_", " ")
        return f"{'an' if said[0] in 'aeiou' else 'a'} {said}"


class Docs:
    """What columns are, said once: in the blocks that are there, and in new ones.

    Attributes:
        added: The new blocks by name, in order.
    """

    def __init__(self, there: Iterable[str], described: Mapping[str, str]) -> None:
        """Begin with what the project says already.

        Args:
            there: The names of all its blocks.
            described: What its models say of their columns, by name: one name means one
                thing in all of them.
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


def docs_text(docs: Docs) -> str:
    """The new blocks, one below the other."""
    return "\n".join(
        f"{{% docs {block} %}}\n{textwrap.fill(text, 92)}\n{{% enddocs %}}\n"
        for block, text in docs.added.items()
    )


def source_file(names: Names, said: str, block: str) -> str:
    """A file for a source of its own, with its first table."""
    return (
        "sources:\n"
        f"  - name: {names.source}\n"
        f"    description: >-\n{folded(said, 6)}"
        "    schema: bronze\n"
        "    loader: spark-ingest\n"
        "    tables:\n"
        f"{block}"
    )


def source_tests(stream: str, longest: Mapping[str, int]) -> list[str]:
    """The tests that the item of each source table has.

    Args:
        stream: Source and table, joined by ``_``.
        longest: How many bytes a text may have, by its column; none of a table without.
    """
    lines = [
        "  data_tests:",
        "    - key_and_required_columns:",
        f"        name: source_{stream}_has_its_key_and_required_columns",
        "        arguments:",
        "          # Nothing doubled: a position in Kafka is one row.",
        "          key: [_kafka_topic_id, _kafka_partition, _kafka_offset]",
    ]
    if longest:
        lines += [
            "    - texts_fit:",
            f"        name: assert_every_text_of_{stream}_fits",
            "        description: >-",
            "          No text has more bytes than its type in staging, which would cut it on",
            "          Redshift.",
            "        arguments:",
            "          max_bytes:",
            *(f"            {name}: {count}" for name, count in longest.items()),
        ]
    return lines


def source_column(name: str, said: str, kind: str) -> list[str]:
    """A column's item in the YAML of a source.

    Args:
        name: The column.
        said: Its description, as it stands in YAML.
        kind: Its type in bronze.
    """
    return [
        f"    - name: {name}",
        f"      description: {said}",
        f"      data_type: {kind}",
    ]


def grouped(
    columns: Iterable[CapturedColumn],
) -> list[tuple[str, list[CapturedColumn]]]:
    """The columns of each group that has some, in the order of the groups."""
    every = list(columns)
    found = [(group, [c for c in every if c.group == group]) for group in GROUPS]
    return [(group, inside) for group, inside in found if inside]


def ordered(columns: Iterable[CapturedColumn]) -> list[CapturedColumn]:
    """The columns in the order of their groups."""
    return [column for _, inside in grouped(columns) for column in inside]


def selected(column: CapturedColumn) -> str:
    """What the last `select` of a model says of a column."""
    line = f"        {column.sql},"
    if len(line) <= WIDTH:
        return line
    expression, _, name = column.sql.rpartition(" as ")
    return f"        {expression}\n            as {name},"


def described(
    column: CapturedColumn, docs: Docs, is_key: bool = False, promised: bool = False
) -> str:
    """A column's item in the YAML of a model."""
    lines = [f"- name: {column.name}", description(docs.of(column))]
    if promised:
        lines.append(f"  data_type: {column.contract}")
    if is_key:
        more = ", warn_unenforced: false" if promised else ""
        lines.append(f"  constraints: [{{type: not_null{more}}}]")
    return textwrap.indent("\n".join(lines) + "\n", " " * 6)


def description(text: str) -> str:
    """A description in one line, or folded where it is too long."""
    line = f"  description: {text}"
    if len(line) + 6 <= _YAML_WIDTH:
        return line
    return f"  description: >-\n{folded(json.loads(text), 4)}".rstrip()


def keyed(key: Iterable[str]) -> str:
    """The test of a model's key."""
    return (
        "    data_tests:\n"
        "      - key_and_required_columns:\n"
        "          arguments:\n"
        f"            key: [{', '.join(key)}]\n"
    )


def folded(text: str, indent: int) -> str:
    """A text in lines that a YAML takes, so far from its left."""
    return textwrap.indent(
        textwrap.fill(text, _YAML_WIDTH - 8 - indent) + "\n", " " * indent
    )


def pattern(name: str) -> str:
    """The columns of a pattern, as they stand in YAML of models and of sources."""
    columns = (_PATTERNS / f"{name}.yml").read_text().partition("columns:\n")[2]
    indent = 10 if name == "source" else 6
    return textwrap.indent(textwrap.dedent(columns), " " * indent)


def items(text: str) -> dict[str, str]:
    """Each item of a list of columns, by its name."""
    starts = [match.start() for match in ITEM.finditer(text)]
    parts = [text[a:b] for a, b in pairwise([*starts, len(text)])]
    return dict(zip(ITEM.findall(text), parts, strict=True))


def first_and_others(text: str) -> tuple[str, str]:
    """The first item of a list of columns, and those behind it."""
    second = list(ITEM.finditer(text))[1]
    return text[: second.start()], text[second.start() :]
