"""The SQL of each figure: its tables, and its rows for pinned snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from dashboard.lake import Look
from dashboard.scan import scans

FOLDER = Path(__file__).parent / "queries"
# The dialect of the marts; translated to DuckDB's.
DIALECT = "spark"

Value = str | int | float | bool | date | datetime


class TablesMissing(Exception):
    """The query uses tables that the lake does not have.

    Attributes:
        tables: Their names, such as ``marts.fct_ticket_sales``.
    """

    def __init__(self, tables: list[str]) -> None:
        super().__init__(f"not built yet: {', '.join(tables)}")
        self.tables = tables


@dataclass(frozen=True)
class Query:
    """One file of ``dashboard/queries``.

    Attributes:
        name: Page and figure, such as ``rentals/sales_by_region``.
        title: The first line of its comment.
        about: The others.
        sql: The whole file, in Spark SQL; ``:name`` is a parameter.
    """

    name: str
    title: str
    about: str
    sql: str

    def parsed(self) -> exp.Expr:
        """The syntax tree of the query."""
        return sqlglot.parse_one(self.sql, read=DIALECT)

    def tables(self) -> list[str]:
        """The distinct tables that it uses, such as ``marts.fct_rental_sales``."""
        found = self.parsed().find_all(exp.Table)
        return sorted({f"{table.db}.{table.name}" for table in found if table.db})

    def parameters(self) -> list[str]:
        """The distinct names of its parameters."""
        return sorted({of.name for of in self.parsed().find_all(exp.Placeholder)})

    def with_values(self, values: Mapping[str, Value]) -> exp.Expr:
        """The syntax tree with values for its parameters.

        Raises:
            KeyError: A parameter has no value.
        """
        tree = self.parsed()
        for parameter in list(tree.find_all(exp.Placeholder)):
            parameter.replace(_literal(values[parameter.name]))
        return tree

    def rows(self, look: Look, values: Mapping[str, Value]) -> pa.Table:
        """Its rows; decimals and sums are 64-bit numbers, for charts.

        Raises:
            TablesMissing: The snapshots do not include all of its tables.
        """
        missing = [name for name in self.tables() if name not in look.tables]
        if missing:
            raise TablesMissing(missing)
        tree = self.with_values(values)
        with duckdb.connect(config={"threads": 2}) as engine:
            engine.execute("set timezone = 'UTC'")
            for name, rows in scans(tree, look, DIALECT).items():
                engine.register(name.replace(".", "__"), rows)
            for table in list(tree.find_all(exp.Table)):
                if table.db:
                    table.replace(
                        exp.to_table(f"{table.db}__{table.name}", alias=table.alias_or_name)
                    )
            found = engine.sql(tree.sql("duckdb"))
            columns = zip(found.columns, map(str, found.types), strict=True)
            drawn = (_drawn(name, kind) for name, kind in columns)
            return found.project(", ".join(drawn)).to_arrow_table()


def _literal(value: Value) -> exp.Expr:
    if isinstance(value, datetime):
        text = exp.Literal.string(value.isoformat(sep=" ", timespec="microseconds"))
        return exp.cast(text, exp.DataType.Type.TIMESTAMPTZ)
    return exp.convert(value)


def _drawn(name: str, kind: str) -> str:
    """A column of a result; DuckDB sums integers as 128-bit integers."""
    kinds = {"HUGEINT": "bigint", "DECIMAL": "double"}
    wanted = kinds.get(kind.partition("(")[0])
    return f'cast("{name}" as {wanted}) as "{name}"' if wanted else f'"{name}"'


def of_page(page: str) -> dict[str, Query]:
    """The queries of a page by figure, sorted; read from the files on each call."""
    return {file.stem: _read(file) for file in sorted((FOLDER / page).glob("*.sql"))}


def tables_of(page: str) -> set[str]:
    """The tables that the queries of a page use."""
    return {table for query in of_page(page).values() for table in query.tables()}


def pages() -> Iterator[str]:
    """The pages that have queries, sorted by name."""
    return (folder.name for folder in sorted(FOLDER.iterdir()) if folder.is_dir())


def _read(file: Path) -> Query:
    sql = file.read_text()
    comment = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        comment.append(line.removeprefix("--").strip())
    title, *about = comment or [file.stem.replace("_", " ").capitalize()]
    return Query(f"{file.parent.name}/{file.stem}", title, " ".join(about), sql)
