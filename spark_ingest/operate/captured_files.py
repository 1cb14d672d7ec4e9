"""The text of what a captured table takes in dbt, in the style of those that are there."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_ingest.operate.captured_columns import GROUPS, CapturedColumn
from spark_ingest.operate.captured_schema import CapturedTable

# The columns that every captured table's models have, with their YAML.
_PATTERNS = Path(__file__).parent / "patterns"
_WIDTH = 88
_YAML_WIDTH = 100
_ITEM = re.compile(r"^ +- name: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Names:
    """What the parts of a captured table are called.

    Attributes:
        source: The dbt source.
        table: Its table.
        domain: The folder of its history.
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


def names_of_changes() -> set[str]:
    """The columns that changes have beside those of the database."""
    return set(_ITEM.findall(_pattern("staging")))


def added_names() -> set[str]:
    """The columns that models have beside those of the database."""
    return names_of_changes() | set(_ITEM.findall(_pattern("history")))


def source_block(names: Names, table: CapturedTable, docs: Docs) -> str:
    """The table's item in the list of its source's tables."""
    stream = f"{names.source}_{names.table}"
    said = {column.source: column for column in table.columns}
    longest = {
        column.source: column.max_bytes
        for column in table.columns
        if column.max_bytes is not None
    }
    lines = [
        f"- name: {names.table}",
        f"  identifier: {names.source}__{names.table}",
        f"  description: {docs.reference(f'{names.source}__{names.table}')}",
        "  config:",
        "    event_time: _kafka_timestamp",
        "    loaded_at_field: _ingested_at",
        "    # A table may change nothing for days.",
        "    freshness:",
        "      warn_after: {count: 30, period: day}",
        "      error_after: {count: 90, period: day}",
        "    meta:",
        "      ingest:",
        f"        topic: {table.topic}",
        "        framing: confluent",
        *(["        key: confluent"] if table.key_type else []),
        "        captured:",
        f"          form: {table.form}",
        f"          key: [{', '.join(table.key)}]",
        *(["          position: binlog"] if table.position == "binlog" else []),
        "  data_tests:",
        "    - key_and_required_columns:",
        f"        name: source_{stream}_has_its_key_and_required_columns",
        "        arguments:",
        "          # Nothing doubled: a position in Kafka is one row.",
        "          key: [_kafka_topic_id, _kafka_partition, _kafka_offset]",
    ]
    # Of an envelope the texts lie inside of a struct.
    if longest and table.form == "flattened":
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
    moments = {c.source: c.counts for c in table.columns if c.counts is not None}
    if moments:
        within = ["          within: after"] if table.form == "envelope" else []
        lines += [
            "    - moments_fit:",
            f"        name: assert_every_moment_of_{stream}_is_one_of_both_engines",
            "        arguments:",
            *within,
            "          columns:",
            *(f"            {name}: {counts}" for name, counts in moments.items()),
        ]
    lines.append("  columns:")
    for name, kind in table.fields.items():
        column = said.get(name) if table.form == "flattened" else None
        described = docs.of_field(name) if column is None else docs.of(column)
        lines += [
            f"    - name: {name}",
            f"      description: {described}",
            f"      data_type: {kind}",
        ]
    if table.key_type:
        lines += [
            "    - name: _key",
            f"      description: {docs.reference('ingest__key')}",
            f"      data_type: {table.key_type}",
        ]
    block = textwrap.indent("\n".join(lines) + "\n", " " * 6)
    return block + _pattern("source")


def new_sources(names: Names, table: CapturedTable, block: str) -> str:
    """A file for a source of its own."""
    database = {"lsn": "PostgreSQL", "binlog": "MariaDB"}[table.position]
    form = ", flattened" if table.form == "flattened" else ""
    said = (
        f"The tables of {names.source}, captured from {database} by Debezium{form}: each "
        "change of a row is a record."
    )
    return (
        "sources:\n"
        f"  - name: {names.source}\n"
        f"    description: >-\n{_folded(said, 6)}"
        "    schema: bronze\n"
        "    loader: spark-ingest\n"
        "    tables:\n"
        f"{block}"
    )


def staging_sql(names: Names, table: CapturedTable) -> str:
    """The staging model: every change, renamed and cast."""
    parts = []
    for group, columns in _grouped(table.columns):
        lines = [f"        -- {group}"]
        if group == "keys":
            lines.append("        record_key,")
        lines += [_selected(column) for column in columns]
        parts.append("\n".join(lines))
    chosen = "\n\n".join(parts)
    return (
        "with\n\nchanges as (\n\n"
        f'    {{{{ captured_changes("{names.source}", "{names.table}") }}}}\n\n'
        "),\n\nfinal as (\n\n    select\n"
        f"{chosen}\n\n"
        "        {{ columns_of_change() }}\n"
        "    from changes\n\n)\n\nselect * from final\n"
    )


def staging_yaml(names: Names, table: CapturedTable, docs: Docs) -> str:
    """What the staging model promises."""
    staging_key, staging_tail = _first_and_others(_pattern("staging"))
    return (
        "models:\n"
        f"  - name: {names.staging}\n"
        "    description: >-\n"
        + _folded(
            f"One row per change of {names.one}, as the database's log records it.", 6
        )
        + _keyed(["record_key"])
        + "            columns_where:\n"
        "              not is_tombstone: [source_position]\n"
        "    columns:\n"
        + staging_key
        + "".join(
            _described(column, docs, column.source in table.key)
            for column in _ordered(table)
        )
        + staging_tail
    )


def history_sql(names: Names, table: CapturedTable) -> str:
    """The model of all versions."""
    key = json.dumps([column.name for column in _of_key(table)])
    others = [
        column.name for column in _ordered(table) if column.source not in table.key
    ]
    attributes = f"    attributes={json.dumps(others)},"
    if len(attributes) > _WIDTH:
        lines = "".join(f'        "{name}",\n' for name in others)
        attributes = f"    attributes=[\n{lines}    ],"
    return (
        "{{ config(\n"
        '    materialized="incremental",\n'
        '    incremental_strategy="rewrite_keys",\n'
        '    partition_by="is_current",\n'
        ") }}\n\n"
        "{{ change_history(\n"
        f'    ref("{names.staging}"),\n'
        f'    stream="{names.stream}",\n'
        f"    key={key},\n"
        f"{attributes}\n"
        ") }}\n"
    )


def history_yaml(names: Names, table: CapturedTable, docs: Docs) -> str:
    """The contract of the versions."""
    history_key, history_tail = _first_and_others(_pattern("history"))
    said = (
        f"One row per version of {names.one}: its row's values, from one change until the "
        "next. A deleted row keeps its last values."
    )
    return (
        "models:\n"
        f"  - name: {names.history}\n"
        f"    description: >-\n{_folded(said, 6)}"
        "    config:\n"
        "      contract: {enforced: true}\n"
        + _keyed(["version_key"])
        + "      - in_newest_snapshot:\n"
        f"          name: assert_every_row_of_{names.source}_{names.table}"
        "_is_in_newest_snapshot\n"
        "          arguments:\n"
        f"            changes: ref('{names.staging}')\n"
        + _texts_apart(table)
        + "    columns:\n"
        + history_key
        + "".join(
            _described(column, docs, column.source in table.key, promised=True)
            for column in _ordered(table)
        )
        + history_tail
    )


def state_sql(names: Names) -> str:
    """The model of what the database holds now."""
    return f'{{{{ latest_state(ref("{names.history}")) }}}}\n'


def state_yaml(names: Names, table: CapturedTable, docs: Docs) -> str:
    """What the state promises."""
    said = names.entity.replace("_", " ")
    return (
        "models:\n"
        f"  - name: {names.state}\n"
        f"    description: One row per {said} that the database holds now.\n"
        + _keyed([column.name for column in _of_key(table)])
        + "    columns:\n"
        + "".join(
            _described(column, docs, column.source in table.key)
            for column in _ordered(table)
        )
        + _pattern("state")
    )


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

    def of_field(self, name: str) -> str:
        """What describes a field that the connector adds, or one that no model has."""
        block = f"captured{name}"
        if name.startswith("__") and block in self._there:
            return self.reference(block)
        plain = name.removeprefix("__")
        said = f"`{plain}`, as the connector writes it."
        return json.dumps(said, ensure_ascii=False)


def docs_text(docs: Docs) -> str:
    """The new blocks, one below the other."""
    return "\n".join(
        f"{{% docs {block} %}}\n{textwrap.fill(text, 92)}\n{{% enddocs %}}\n"
        for block, text in docs.added.items()
    )


def _grouped(
    columns: Iterable[CapturedColumn],
) -> list[tuple[str, list[CapturedColumn]]]:
    every = list(columns)
    found = [(group, [c for c in every if c.group == group]) for group in GROUPS]
    return [(group, inside) for group, inside in found if inside]


def _ordered(table: CapturedTable) -> list[CapturedColumn]:
    return [column for _, inside in _grouped(table.columns) for column in inside]


def _of_key(table: CapturedTable) -> list[CapturedColumn]:
    return [column for column in _ordered(table) if column.source in table.key]


def _selected(column: CapturedColumn) -> str:
    line = f"        {column.sql},"
    if len(line) <= _WIDTH:
        return line
    expression, _, name = column.sql.rpartition(" as ")
    return f"        {expression}\n            as {name},"


def _described(
    column: CapturedColumn, docs: Docs, is_key: bool = False, promised: bool = False
) -> str:
    lines = [f"- name: {column.name}", _description(docs.of(column))]
    if promised:
        lines.append(f"  data_type: {column.contract}")
    if is_key:
        more = ", warn_unenforced: false" if promised else ""
        lines.append(f"  constraints: [{{type: not_null{more}}}]")
    return textwrap.indent("\n".join(lines) + "\n", " " * 6)


def _description(text: str) -> str:
    line = f"  description: {text}"
    if len(line) + 6 <= _YAML_WIDTH:
        return line
    return f"  description: >-\n{_folded(json.loads(text), 4)}".rstrip()


def _keyed(key: Iterable[str]) -> str:
    return (
        "    data_tests:\n"
        "      - key_and_required_columns:\n"
        "          arguments:\n"
        f"            key: [{', '.join(key)}]\n"
    )


def _texts_apart(table: CapturedTable) -> str:
    texts = [column.name for column in _of_key(table) if column.max_bytes is not None]
    if not texts:
        return ""
    return (
        "      - text_keys_stay_apart:\n"
        "          arguments:\n"
        f"            key: [{', '.join(texts)}]\n"
    )


def _folded(text: str, indent: int) -> str:
    return textwrap.indent(
        textwrap.fill(text, _YAML_WIDTH - 8 - indent) + "\n", " " * indent
    )


def _pattern(name: str) -> str:
    """The columns of a pattern, as they stand in YAML of models and of sources."""
    columns = (_PATTERNS / f"{name}.yml").read_text().partition("columns:\n")[2]
    indent = 10 if name == "source" else 6
    return textwrap.indent(textwrap.dedent(columns), " " * indent)


def _first_and_others(text: str) -> tuple[str, str]:
    """The first item of a list of columns, and those behind it."""
    second = list(_ITEM.finditer(text))[1]
    return text[: second.start()], text[second.start() :]
