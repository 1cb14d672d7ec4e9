"""Relations as both engines give them: columns with types, rows as texts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import redshift_connector
from redshift_connector.core import Connection

# How a type of the contract is called on Spark and on Redshift. A length is reported on
# Redshift alone: Iceberg has strings.
TYPES = [
    # contract, Spark, Redshift
    ("boolean", "boolean", "boolean"),
    ("integer", "int", "integer"),
    ("bigint", "bigint", "bigint"),
    ("decimal(p,s)", "decimal(p,s)", "numeric(p,s)"),
    ("varchar(n)", "string", "character varying(n)"),
    ("date", "date", "date"),
    ("timestamp", "timestamp", "timestamp without time zone"),
]
# No contract has them; two models may still be asked whether they agree.
_OTHERS = [("double", "double", "double precision"), ("float", "float", "real")]

Cell = str | None


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: Its name.
        type: Its type as a contract calls it; what no contract knows keeps the engine's
            name. A ``varchar`` of Spark has no length.
    """

    name: str
    type: str


@dataclass(frozen=True)
class Relation:
    """A table or a view.

    Attributes:
        columns: In order.
        rows: In any order.
        identity: Stays the same as long as the table is not recreated.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    identity: str = ""


def spark_type(name: str) -> str:
    """A type of Spark as a contract calls it."""
    return _contract_type(name, {spark: kind for kind, spark, _ in [*TYPES, *_OTHERS]})


def redshift_type(name: str) -> str:
    """A type of Redshift as a contract calls it."""
    return _contract_type(name, {there: kind for kind, _, there in [*TYPES, *_OTHERS]})


def from_spark(found: Mapping[str, Any]) -> Relation:
    """What the step ``read`` of ``lake_program`` gave of a table."""
    columns = tuple(Column(name, spark_type(kind)) for name, kind in found["columns"])
    return Relation(
        columns,
        tuple(
            tuple(
                None if value is None else _shown(value, column.type)
                for value, column in zip(row, columns, strict=True)
            )
            for row in found["rows"]
        ),
        found["identity"],
    )


def connected(port: int) -> Connection:
    """A connection to the emulator, as any client of Redshift has one."""
    return redshift_connector.connect(
        host="127.0.0.1", port=port, database="dev", user="millrace", password="millrace", ssl=False
    )


def from_standin(port: int, names: Sequence[str]) -> dict[str, Relation]:
    """Relations of the emulator, read as any client of Redshift reads them.

    Args:
        port: The emulator's.
        names: ``schema.relation``; what is not there is left out.
    """
    with connected(port) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "select schema_name, table_name, column_name, data_type"
            " from svv_redshift_columns order by ordinal_position"
        )
        columns: dict[str, list[Column]] = {}
        for schema, table, name, kind in cursor.fetchall():
            columns.setdefault(f"{schema}.{table}", []).append(Column(name, redshift_type(kind)))
        cursor.execute('select "schema", "table", table_id from svv_table_info')
        numbers = {f"{row[0]}.{row[1]}": str(row[2]) for row in cursor.fetchall()}
        found = {}
        for name in names:
            if name in columns:
                # The driver's own times end with the year 9999.
                selected = ", ".join(
                    f"cast({column.name} as varchar(40))"
                    if column.type == "timestamp"
                    else column.name
                    for column in columns[name]
                )
                cursor.execute(f"select {selected} from {name}")
                found[name] = Relation(
                    tuple(columns[name]),
                    tuple(tuple(map(_cell, row, columns[name])) for row in cursor.fetchall()),
                    numbers.get(name, ""),
                )
        return found


def _contract_type(name: str, kinds: Mapping[str, str]) -> str:
    """The type with its own numbers in place of the letters."""
    numbers = "".join(re.findall(r"\([\d, ]+\)", name)).replace(" ", "")
    bare = re.sub(r"\([\d, ]+\)", "", name)
    for engine, contract in kinds.items():
        if re.sub(r"\(.*\)", "", engine) == bare and bool(numbers) == ("(" in engine):
            return re.sub(r"\(.*\)", "", contract) + numbers
    return name


def _cell(value: Any, column: Column) -> Cell:
    """A value of the driver as Spark writes it."""
    if value is None:
        return None
    if isinstance(value, str):
        return spark_time(value) if column.type == "timestamp" else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"no cell of a model is a {type(value).__name__}: {value!r}")


def spark_time(text: str) -> str:
    """Years before the first, and behind 9999, as Spark writes them."""
    year, rest = text.split("-", maxsplit=1)
    if rest.endswith(" BC"):
        return f"{1 - int(year):04d}-{rest.removesuffix(' BC')}"
    return text if len(year) == 4 else f"+{text}"


def _shown(text: str, kind: str) -> Cell:
    """A text of Spark, numbers without an exponent."""
    if kind.startswith("decimal"):
        return f"{Decimal(text):f}"
    return repr(float(text)) if kind in {"double", "float"} else text


def save(relations: Mapping[str, Relation], file: Path) -> None:
    """Write relations to a file, for ``load``."""
    file.write_text(
        json.dumps(
            {
                name: {
                    "columns": [(c.name, c.type) for c in relation.columns],
                    "rows": relation.rows,
                    "identity": relation.identity,
                }
                for name, relation in relations.items()
            }
        )
    )


def load(file: Path) -> dict[str, Relation]:
    """Relations that ``save`` wrote."""
    return {
        name: Relation(
            tuple(Column(*column) for column in saved["columns"]),
            tuple(map(tuple, saved["rows"])),
            saved["identity"],
        )
        for name, saved in json.loads(file.read_text()).items()
    }


if __name__ == "__main__":
    # Port, file to write, relations.
    save(from_standin(int(sys.argv[1]), sys.argv[3:]), Path(sys.argv[2]))
