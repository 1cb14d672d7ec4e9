"""The text of what a captured table takes in dbt, in the style of those that are there."""

from __future__ import annotations

import json
import textwrap

from spark_ingest.drafts.captured_columns import CapturedColumn
from spark_ingest.drafts.captured_schema import CapturedTable
from spark_ingest.drafts.model_text import (
    ITEM,
    WIDTH,
    Docs,
    Names,
    described,
    first_and_others,
    folded,
    grouped,
    keyed,
    ordered,
    pattern,
    selected,
    source_column,
    source_tests,
)


def names_of_changes() -> set[str]:
    """The columns that changes have beside those of the database."""
    return set(ITEM.findall(pattern("staging")))


def added_names() -> set[str]:
    """The columns that models have beside those of the database."""
    return names_of_changes() | set(ITEM.findall(pattern("history")))


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
        # Of an envelope the texts lie inside of a struct.
        *source_tests(stream, longest if table.form == "flattened" else {}),
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
        described_as = docs.of_field(name) if column is None else docs.of(column)
        lines += source_column(name, described_as, kind)
    if table.key_type:
        lines += source_column("_key", docs.reference("ingest__key"), table.key_type)
    block = textwrap.indent("\n".join(lines) + "\n", " " * 6)
    return block + pattern("source")


def said_of(names: Names, table: CapturedTable) -> str:
    """What the source of a captured table is, where it is new."""
    database = {"lsn": "PostgreSQL", "binlog": "MariaDB"}[table.position]
    form = ", flattened" if table.form == "flattened" else ""
    return (
        f"The tables of {names.source}, captured from {database} by Debezium{form}: each "
        "change of a row is a record."
    )


def staging_sql(names: Names, table: CapturedTable) -> str:
    """The staging model: every change, renamed and cast."""
    parts = []
    for group, columns in grouped(table.columns):
        lines = [f"        -- {group}"]
        if group == "keys":
            lines.append("        record_key,")
        lines += [selected(column) for column in columns]
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
    staging_key, staging_tail = first_and_others(pattern("staging"))
    return (
        "models:\n"
        f"  - name: {names.staging}\n"
        "    description: >-\n"
        + folded(
            f"One row per change of {names.one}, as the database's log records it.", 6
        )
        + keyed(["record_key"])
        + "            columns_where:\n"
        "              not is_tombstone: [source_position]\n"
        "    columns:\n"
        + staging_key
        + "".join(
            described(column, docs, column.source in table.key)
            for column in ordered(table.columns)
        )
        + staging_tail
    )


def history_sql(names: Names, table: CapturedTable) -> str:
    """The model of all versions."""
    key = json.dumps([column.name for column in _of_key(table)])
    others = [
        column.name
        for column in ordered(table.columns)
        if column.source not in table.key
    ]
    attributes = f"    attributes={json.dumps(others)},"
    if len(attributes) > WIDTH:
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
    history_key, history_tail = first_and_others(pattern("history"))
    said = (
        f"One row per version of {names.one}: its row's values, from one change until the "
        "next. A deleted row keeps its last values."
    )
    return (
        "models:\n"
        f"  - name: {names.history}\n"
        f"    description: >-\n{folded(said, 6)}"
        "    config:\n"
        "      contract: {enforced: true}\n"
        + keyed(["version_key"])
        + "      - in_newest_snapshot:\n"
        f"          name: assert_every_row_of_{names.source}_{names.table}"
        "_is_in_newest_snapshot\n"
        "          arguments:\n"
        f"            changes: ref('{names.staging}')\n"
        + _texts_apart(table)
        + "    columns:\n"
        + history_key
        + "".join(
            described(column, docs, column.source in table.key, promised=True)
            for column in ordered(table.columns)
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
        + keyed([column.name for column in _of_key(table)])
        + "    columns:\n"
        + "".join(
            described(column, docs, column.source in table.key)
            for column in ordered(table.columns)
        )
        + pattern("state")
    )


def _of_key(table: CapturedTable) -> list[CapturedColumn]:
    return [column for column in ordered(table.columns) if column.source in table.key]


def _texts_apart(table: CapturedTable) -> str:
    texts = [column.name for column in _of_key(table) if column.max_bytes is not None]
    if not texts:
        return ""
    return (
        "      - text_keys_stay_apart:\n"
        "          arguments:\n"
        f"            key: [{', '.join(texts)}]\n"
    )
