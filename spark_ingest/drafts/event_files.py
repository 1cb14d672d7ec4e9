"""The text of what a stream of events takes in dbt, in the style of those that are there."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from spark_ingest.drafts.event_schema import EventStream
from spark_ingest.drafts.model_text import (
    WIDTH,
    Docs,
    Names,
    described,
    folded,
    grouped,
    items,
    ordered,
    pattern,
    selected,
    source_column,
    source_tests,
)

_METADATA = (
    "_kafka_topic_id",
    "_kafka_partition",
    "_kafka_offset",
    "_kafka_timestamp",
    "_ingested_at",
    "_commit_id",
)
_RECORD_KEY = """\
        cast(
            _kafka_topic_id
            || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
"""
_TAIL = """\
        -- metadata
        cast(_kafka_topic_id as varchar(64)) as _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        cast(_kafka_timestamp as timestamp) as _kafka_timestamp,
        cast(_ingested_at as timestamp) as _ingested_at,
        _commit_id
    from records

)

select * from final
"""
_VALUES_WIDTH = 74
# A value of each type that a column of a model can have in bronze.
_EXAMPLES = {
    "string": "'x'",
    "boolean": "true",
    "date": "date'2026-01-01'",
    "timestamp": "timestamp'2026-01-01 10:00:00'",
    "timestamp_ntz": "timestamp_ntz'2026-01-01 10:00:00'",
}


def added_names() -> set[str]:
    """The columns that the model has beside those of the events."""
    return {"record_key", "is_tombstone", *_METADATA}


def source_block(names: Names, stream: EventStream, docs: Docs) -> str:
    """The stream's item in the list of its source's tables."""
    said = {column.source: column for column in stream.columns}
    longest = {
        column.source: column.max_bytes
        for column in stream.columns
        if column.max_bytes is not None
    }
    event_time = stream.event_time
    lines = [
        f"- name: {names.table}",
        f"  identifier: {names.source}__{names.table}",
        f"  description: {docs.reference(f'{names.source}__{names.table}')}",
        "  config:",
        "    event_time: _kafka_timestamp",
        "    loaded_at_field: _ingested_at",
        "    freshness:",
        "      warn_after: {count: 1, period: day}",
        "      error_after: {count: 7, period: day}",
        "    meta:",
        "      ingest:",
        f"        topic: {stream.topic}",
        "        framing: confluent",
        *(["        key: confluent"] if stream.key_type else []),
        *([f"        event_time: {event_time}"] if event_time else []),
        *source_tests(f"{names.source}_{names.table}", longest),
        "  columns:",
    ]
    for name, kind in stream.fields.items():
        column = said.get(name)
        text = (
            docs.of_field(name, "the producer") if column is None else docs.of(column)
        )
        lines += source_column(name, text, kind)
    if stream.key_type:
        lines += source_column("_key", docs.reference("ingest__key"), stream.key_type)
    return textwrap.indent("\n".join(lines) + "\n", " " * 6) + pattern("source")


def staging_sql(names: Names, stream: EventStream) -> str:
    """The staging model: every record, renamed and cast."""
    of_group = dict(grouped(stream.columns))
    parts = []
    for group in ("keys", "attributes", "numbers", "flags", "times"):
        lines = [selected(column) for column in of_group.get(group, ())]
        if group == "keys":
            lines.insert(0, _RECORD_KEY.rstrip("\n"))
        if group == "flags":
            lines.append("        _is_tombstone as is_tombstone,")
        if lines:
            parts.append("\n".join([f"        -- {group}", *lines]))
    chosen = "\n\n".join(parts)
    return (
        "with\n\nrecords as (\n\n"
        f'    select * from {{{{ source("{names.source}", "{names.table}") }}}}\n\n'
        f"),\n\nfinal as (\n\n    select\n{chosen}\n\n{_TAIL}"
    )


def staging_yaml(names: Names, stream: EventStream, docs: Docs) -> str:
    """What the staging model promises, and its unit test."""
    added = items(pattern("staging"))
    columns = ordered(stream.columns)
    times = [column for column in columns if column.group == "times"]
    renamed = {c.source: c.name for c in stream.columns if c.source != c.name}
    said = "One row per record of the topic, tombstones too, under our names and types."
    lines = [
        "    data_tests:",
        "      - key_and_required_columns:",
        f"          name: {names.staging}_has_its_key_and_required_columns",
        "          arguments:",
        "            key: [record_key]",
        *_required(stream),
        "      - casts_keep:",
        f"          name: assert_no_value_of_{names.source}_{names.table}_is_lost_in_casts",
        "          description: Staging has as many values of each column as bronze.",
        "          arguments:",
        f"            of: source('{names.source}', '{names.table}')",
        *(["            renamed:"] if renamed else []),
        *(f"              {source}: {name}" for source, name in renamed.items()),
        *(_listed("left_out", stream.left_out, 12) if stream.left_out else []),
        "    columns:",
    ]
    return (
        f"models:\n  - name: {names.staging}\n    description: >-\n{folded(said, 6)}"
        + "\n".join(lines)
        + "\n"
        + added["record_key"]
        + "".join(described(column, docs) for column in columns if column not in times)
        + added["is_tombstone"]
        + "".join(described(column, docs) for column in times)
        + "".join(added[name] for name in _METADATA)
        + _unit_test(names, stream)
    )


def _required(stream: EventStream) -> list[str]:
    if not stream.required:
        return []
    return [
        "            columns_where:",
        *_listed("not is_tombstone", stream.required, 14),
    ]


def _listed(key: str, names: Iterable[str], indent: int) -> list[str]:
    """A key with its names, in one line where they fit."""
    left = " " * indent
    line = f"{left}{key}: [{', '.join(names)}]"
    if len(line) <= WIDTH:
        return [line]
    return [f"{left}{key}:", *(f"{left}  - {name}" for name in names)]


def _unit_test(names: Names, stream: EventStream) -> str:
    """A record, the same once more, and a tombstone: each is a row."""
    values = [
        f"{_example(stream.fields[c.source])} as {c.source}" for c in stream.columns
    ]
    first = ",\n".join(
        f"              {value}" for value in [*values, *_placed(5, False)]
    )
    same = [_example(stream.fields[c.source]) for c in stream.columns]
    nulls = ["null"] * len(values)
    rows = f"          select\n{first}\n" + "".join(
        f"          union all\n          select\n{_wrapped(row)},\n{_wrapped(placed)}\n"
        for row, placed in ((same, _bare(6, False)), (nulls, _bare(7, True)))
    )
    expected = "".join(
        f"        - {{record_key: T-0-{offset}, is_tombstone: {is_tombstone}}}\n"
        for offset, is_tombstone in ((5, "false"), (6, "false"), (7, "true"))
    )
    return (
        "\nunit_tests:\n"
        f"  - name: {names.staging}_keeps_tombstones_and_repeats\n"
        "    description: Staging renames and casts; it neither drops nor merges a record.\n"
        f"    model: {names.staging}\n"
        "    given:\n"
        f"      - input: source('{names.source}', '{names.table}')\n"
        "        format: sql\n"
        "        rows: |\n"
        f"{rows}"
        "    expect:\n"
        "      rows:\n"
        f"{expected}"
    )


def _example(kind: str) -> str:
    return _EXAMPLES.get(kind, f"cast(1 as {kind.replace(',', ', ')})")


def _placed(offset: int, is_tombstone: bool) -> list[str]:
    """What ingest adds to a record of the unit test, with its names."""
    return [
        "'T' as _kafka_topic_id",
        "cast(0 as int) as _kafka_partition",
        f"cast({offset} as bigint) as _kafka_offset",
        "timestamp'2026-01-01 10:00:01' as _kafka_timestamp",
        f"{str(is_tombstone).lower()} as _is_tombstone",
        "timestamp'2026-01-01 10:00:02' as _ingested_at",
        "cast(1 as bigint) as _commit_id",
    ]


def _bare(offset: int, is_tombstone: bool) -> list[str]:
    """The same without names and types, which rows behind the first have of it."""
    values = [each.rpartition(" as ")[0] for each in _placed(offset, is_tombstone)]
    return [re.sub(r"^cast\((\d+) as \w+\)$", r"\1", v) for v in values]


def _wrapped(values: Iterable[str]) -> str:
    """Values in lines, none of them broken."""
    lines = [""]
    for value in values:
        longer = f"{lines[-1]}, {value}" if lines[-1] else value
        if len(longer) <= _VALUES_WIDTH:
            lines[-1] = longer
        else:
            lines.append(value)
    return ",\n".join(f"              {line}" for line in lines)
