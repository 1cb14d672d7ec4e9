"""Column projection and filter pushdown for the tables of a query."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as iceberg
from pyiceberg.table import Table
from pyiceberg.types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestamptzType,
)
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from dashboard.lake import Look

# pydantic's mypy plugin does not know their positional arguments.
_COMPARISONS: dict[type[exp.Expr], Any] = {
    exp.EQ: iceberg.EqualTo,
    exp.GT: iceberg.GreaterThan,
    exp.GTE: iceberg.GreaterThanOrEqual,
    exp.LT: iceberg.LessThan,
    exp.LTE: iceberg.LessThanOrEqual,
}


def scans(tree: exp.Expr, look: Look, dialect: str) -> dict[str, pa.Table]:
    """The rows that a query reads from each table, by the table's name.

    Conditions of a ``where`` that compare a column with a literal are pushed down; the query
    applies them again, with all others. No filter is pushed down to a table that occurs twice.

    Args:
        tree: The query; not modified.
        look: The tables with pinned snapshots.
        dialect: The SQL dialect of the query.
    """
    columns: dict[str, set[str]] = defaultdict(set)
    filters: dict[str, list[iceberg.BooleanExpression]] = {}
    for scope in traverse_scope(_qualified(tree, look, dialect)):
        for alias, source in scope.sources.items():
            if not isinstance(source, exp.Table) or not source.db:
                continue
            name = f"{source.db}.{source.name}"
            columns[name] |= {of.name for of in scope.columns if of.table == alias}
            filters[name] = [] if name in filters else _filters(scope, alias, look.tables[name])
    with ThreadPoolExecutor() as threads:
        found = threads.map(
            lambda name: _rows(look.tables[name], columns[name], filters[name]), columns
        )
        return dict(zip(columns, found, strict=True))


def _qualified(tree: exp.Expr, look: Look, dialect: str) -> exp.Expr:
    """The query with qualified column names."""
    schema: dict[str, Any] = defaultdict(dict)
    for name, table in look.tables.items():
        database, entity = name.split(".")
        schema[database][entity] = dict.fromkeys(table.schema().column_names, "string")
    return qualify(tree.copy(), schema=schema, dialect=dialect)


def _rows(table: Table, columns: set[str], filters: list[iceberg.BooleanExpression]) -> pa.Table:
    # `count(*)` uses no column.
    fields = tuple(columns) or (table.schema().column_names[0],)
    condition = iceberg.And(iceberg.AlwaysTrue(), iceberg.AlwaysTrue(), *filters)
    return table.scan(row_filter=condition, selected_fields=fields).to_arrow()


def _filters(scope: Scope, alias: str, table: Table) -> list[iceberg.BooleanExpression]:
    where = scope.expression.args.get("where")
    if where is None:
        return []
    conditions = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    found = (_filter(condition.unnest(), alias, table) for condition in conditions)
    return [one for one in found if one is not None]


def _filter(condition: exp.Expr, alias: str, table: Table) -> iceberg.BooleanExpression | None:
    """An Iceberg expression for a comparison; None if it cannot be pushed down."""
    kind = _COMPARISONS.get(type(condition))
    column, value = condition.args.get("this"), condition.args.get("expression")
    if kind is None or not isinstance(column, exp.Column) or column.table != alias:
        return None
    if isinstance(value, exp.Cast):
        value = value.this
    if not isinstance(value, exp.Literal):
        return None
    literal = _literal(value, table.schema().find_field(column.name).field_type)
    if literal is None:
        return None
    found: iceberg.BooleanExpression = kind(column.name, literal)
    return found


def _literal(value: exp.Literal, of: IcebergType) -> str | int | None:
    """An Iceberg literal for a column; None if the semantics might differ from SQL."""
    text: str = value.this
    if isinstance(of, TimestamptzType) and value.is_string:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
    if isinstance(of, DateType) and value.is_string:
        return text if len(text) == len("2026-01-01") else None
    if isinstance(of, StringType) and value.is_string:
        return text
    is_whole = isinstance(of, (IntegerType, LongType)) and text.isdigit()
    return int(text) if is_whole else None
