"""The text of the dbt files of a captured table, in the style of the existing ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from spark_ingest.drafts.captured_columns import CapturedColumn
from spark_ingest.drafts.captured_schema import CapturedTable
from spark_ingest.drafts.model_text import (
    Docs,
    Names,
    anchored,
    flow_column,
    grouped,
    ordered,
    rendered,
)
from spark_ingest.drafts.yaml_places import parse


def names_of_changes() -> set[str]:
    """The columns of the changes besides those of the database."""
    return {column["name"] for column in _bare()[0]["columns"]}


def added_names() -> set[str]:
    """The columns of the models besides those of the database."""
    return {column["name"] for model in _bare() for column in model["columns"]}


@cache
def _bare() -> list[dict[str, Any]]:
    """The models of a table without columns."""
    names = Names("source", "table", "domain", "row")
    empty = CapturedTable("topic", "envelope", "lsn", (), None, {}, (), {})
    models: list[dict[str, Any]] = parse(models_yaml(names, empty, Docs((), {}), ""))["models"]
    return models


def source_description(names: Names, table: CapturedTable) -> str:
    """The description of a new source."""
    database = {"lsn": "PostgreSQL", "binlog": "MariaDB"}[table.position]
    form = ", flattened" if table.form == "flattened" else ""
    return (
        f"The tables of {names.source}, captured from {database} by Debezium{form}: each "
        "change of a row is a record."
    )


def models_yaml(names: Names, table: CapturedTable, docs: Docs, there: str) -> str:
    """The YAML of staging, history and current rows, appended to that of the other tables.

    ``there`` is the YAML of the source's other tables; empty if there are none.
    """
    text = there or rendered("captured_head.yml", names=names)
    known = anchored(text)
    aliases, columns = [], []
    for column in ordered(table.columns):
        fields = _fields(column, docs, column.source in table.key)
        meant = _meant(fields, known)
        same = [anchor for anchor, item in known.items() if item == meant]
        taken = column.name in known
        anchor = same[0] if same else f"{names.table}_{column.name}" if taken else ""
        anchor = anchor or column.name
        aliases.append(f"*{anchor},")
        columns.append(f"      *{anchor}," if same else flow_column(anchor, fields))
    key = _of_key(table)
    one = names.entity.replace("_", " ")
    row = f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
    block = rendered(
        "captured_table.yml",
        names=names,
        columns=columns,
        aliases=" ".join(aliases),
        key=[column.name for column in key],
        text_key=[column.name for column in key if column.max_bytes is not None],
        of_changes=f"One row per change of {row}, as the database's log records it.",
        of_versions=f"One row per version of {row}: its row's values, from one change until "
        "the next. A deleted row keeps its last values.",
        of_rows=f"One row per {one} that currently exists in the database.",
    )
    return text + (block if there else block.removeprefix("\n"))


def _fields(column: CapturedColumn, docs: Docs, is_key: bool) -> dict[str, str]:
    """A column's item in the YAML as text."""
    has_commas = "," in column.contract
    return {
        "name": column.name,
        "description": docs.of(column),
        "data_type": f'"{column.contract}"' if has_commas else column.contract,
        **({"constraints": "*not_null"} if is_key else {}),
    }


def _meant(fields: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: known.get(text[1:]) if text.startswith("*") else parse(text)
        for key, text in fields.items()
    }


def models_sql(names: Names, table: CapturedTable) -> dict[str, str]:
    """The SQL of staging, history and current rows, by model."""
    key = [column.name for column in _of_key(table)]
    others = [c.name for c in ordered(table.columns) if c.source not in table.key]
    return {
        names.staging: rendered(
            "captured_staging.sql", names=names, groups=grouped(table.columns, ["keys"])
        ),
        names.history: rendered("captured_history.sql", names=names, key=key, attributes=others),
        names.state: f'{{{{ latest_state(ref("{names.history}")) }}}}\n',
    }


def _of_key(table: CapturedTable) -> list[CapturedColumn]:
    return [column for column in ordered(table.columns) if column.source in table.key]
