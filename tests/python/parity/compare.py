"""Hold a relation of Spark against the same one of the Redshift emulator, cell by cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tests.python.parity.relations import Cell, Column, Relation

_LONGEST = 60


@dataclass(frozen=True)
class Difference:
    """Where two relations are not the same.

    Attributes:
        where: The row's key; nothing when it is about the columns.
        column: The column; nothing when a whole row is in one alone.
        spark: What Spark has.
        standin: What the emulator has.
    """

    where: str
    column: str
    spark: str
    standin: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.where, self.column) if part)
        return f"{place}: {self.spark} on Spark, {self.standin} on the emulator"


def compare(
    spark: Relation | None,
    standin: Relation | None,
    key: Sequence[str] = (),
    contract: Mapping[str, str] | None = None,
    compares_types: bool = True,
) -> list[Difference]:
    """Every difference of two relations.

    Rows are matched by their key; those that share one are matched in their order as
    texts, so that a key that is there twice hides nothing.

    Args:
        spark: What Spark has; none when there is no such relation.
        standin: What the emulator has.
        key: The columns that say which rows belong together; none: all.
        contract: Types that columns must have on both, with the length of a varchar.
        compares_types: Whether columns must have one type on both.

    Returns:
        The differences: of the columns if there are any, else of the rows, by key.
    """
    if spark is None or standin is None:
        there = {False: "a relation", True: "none"}
        return [Difference("", "", there[spark is None], there[standin is None])]
    return _column_differences(spark, standin, contract or {}, compares_types) or _row_differences(
        spark, standin, key
    )


def _column_differences(
    spark: Relation, standin: Relation, contract: Mapping[str, str], compares_types: bool
) -> list[Difference]:
    found = []
    for here, there in zip_longest(spark.columns, standin.columns):
        if here is None or there is None or here.name != there.name:
            return [Difference("", "columns", _names(spark.columns), _names(standin.columns))]
        if not compares_types:
            continue
        declared = contract.get(here.name, there.type)
        if here.type != _without_length(declared) or there.type != declared:
            promised = f" (the contract says {declared})" if contract else ""
            found.append(Difference("", here.name, here.type + promised, there.type + promised))
        elif declared == "varchar":
            found.append(Difference("", here.name, here.type, "varchar of no length"))
    return found


def _row_differences(spark: Relation, standin: Relation, key: Sequence[str]) -> list[Difference]:
    names = [column.name for column in spark.columns]
    at = [names.index(name) for name in key]
    ours, theirs = _by_key(spark, at), _by_key(standin, at)
    found = []
    for key_values in sorted(ours.keys() | theirs.keys(), key=_order):
        where = " ".join(map(_shown, key_values))
        for here, there in zip_longest(ours[key_values], theirs[key_values]):
            if here is None or there is None:
                found.append(
                    Difference(
                        where,
                        "",
                        "no row" if here is None else "a row",
                        "no row" if there is None else "a row",
                    )
                )
                continue
            found += [
                Difference(where, name, _shown(a), _shown(b))
                for name, a, b in zip(names, here, there, strict=True)
                if a != b
            ]
    return found


def _by_key(
    relation: Relation, at: Sequence[int]
) -> defaultdict[tuple[Cell, ...], list[tuple[Cell, ...]]]:
    rows: defaultdict[tuple[Cell, ...], list[tuple[Cell, ...]]] = defaultdict(list)
    for row in sorted(relation.rows, key=_order):
        rows[tuple(row[place] for place in at) if at else row].append(row)
    return rows


def _order(row: Sequence[Cell]) -> list[tuple[bool, str]]:
    """Nulls after all texts, the empty one included."""
    return [(value is None, value or "") for value in row]


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _without_length(kind: str) -> str:
    return "varchar" if kind.startswith("varchar") else kind


def _shown(value: Cell) -> str:
    if value is None:
        return "null"
    shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}… ({len(value)})"
    return repr(shown)
