"""``captured`` of a source: the key, change format and log position of a captured table.

Records are landed in bronze like those of any stream. These properties are for the models behind
bronze, and for the time before the first change, when there is neither a topic nor a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

# The field of an envelope with the row after a change.
AFTER = "after"
_LOG_POSITIONS = ("lsn", "binlog")
_STRUCT = re.compile(r"\s*struct\s*<(.*)>\s*", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(?:`([^`]*)`|([^\s:`]+))")

Form = Literal["flattened", "envelope", "rows"]


@dataclass(frozen=True)
class Chosen:
    """Some columns of a table.

    Attributes:
        names: Names of the included or, with ``all_but``, excluded columns.
        all_but: Whether all columns except the named ones are included.
    """

    names: tuple[str, ...]
    all_but: bool = False

    def has(self, column: str) -> bool:
        """Whether a column is included."""
        return (column in self.names) != self.all_but


class Captured(BaseModel):
    """``config.meta.ingest.captured`` of a dbt source table.

    Attributes:
        form: Format of a record: the row and fields added by the connector (``flattened``),
            the row before and after the change (``envelope``), or only the row (``rows``).
        key: The table's primary-key columns, by their names in the database.
        position: The order of the changes of a row: the position in the database's log, or
            columns.
        deletes_when: SQL condition for records that delete their row, if the form does not
            mark them.
        truncates_when: SQL condition for records that delete all rows.
        columns: The columns of history and current rows; None for all.
        table: ``schema.table`` in the database, or ``database.table`` in MariaDB; None if the
            topic is named after it.
        database: The name of its database in ``databases`` of the profile and in dbt's
            variable ``log_restarts``; None if it is the name of the dbt source.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    form: Form
    key: tuple[str, ...]
    position: Literal["lsn", "binlog"] | tuple[str, ...] = "lsn"
    deletes_when: str | None = None
    truncates_when: str | None = None
    columns: Chosen | None = None
    table: str | None = None
    database: str | None = None

    @field_validator("key", mode="plain")
    @classmethod
    def _key(cls, key: Any) -> tuple[str, ...]:
        if key == []:
            raise ValueError(
                "is empty: a table without a key has no history, because nothing identifies the "
                "row of a change; give columns that are unique together, or remove `captured`"
            )
        return _names(key, "the columns of the table's primary key")

    @field_validator("position", mode="plain")
    @classmethod
    def _position(cls, position: Any) -> str | tuple[str, ...]:
        if isinstance(position, str):
            if position not in _LOG_POSITIONS:
                raise ValueError(
                    f"is {position!r}: lsn (PostgreSQL), binlog (MariaDB, MySQL), or a list of "
                    "columns"
                )
            return position
        return _names(position, "lsn, binlog, or columns such as [last_update]")

    @field_validator("deletes_when", "truncates_when")
    @classmethod
    def _condition(cls, condition: str | None) -> str | None:
        if condition is not None and not condition.strip():
            raise ValueError("is empty: give an SQL condition, or remove it")
        return condition

    @field_validator("table")
    @classmethod
    def _table(cls, table: str | None) -> str | None:
        if table is not None and not all(table.partition(".")):
            raise ValueError(f"is {table!r}: give it with its schema, such as public.film")
        return table

    @field_validator("columns", mode="plain")
    @classmethod
    def _chosen(cls, chosen: Any) -> Chosen:
        expected = "a list of columns, or {all_but: [columns]}"
        if isinstance(chosen, Mapping):
            if list(chosen) != ["all_but"]:
                raise ValueError(f"must be {expected}")
            return Chosen(_names(chosen["all_but"], expected), all_but=True)
        return Chosen(_names(chosen, expected))

    def database_in(self, source: str) -> str:
        """The name of its database; by default that of the dbt source."""
        return self.database or source

    def table_in(self, topic: str) -> str:
        """The table in its database; by default from the end of Debezium's topic name."""
        return self.table or ".".join(topic.split(".")[-2:])

    def mistake(self, described: Mapping[str, str | None]) -> tuple[str, str] | None:
        """The first key that contradicts another key or the source's columns, and the reason.

        ``described`` has the source's columns with their data types; without any, columns are not
        checked.
        """
        return next(chain(self._contradictions(), self._unknown(described)), None)

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if self.form == "rows" and isinstance(self.position, str):
            reason = (
                "form rows has no position in the database's log: give columns that order the "
                "versions of a row, such as [last_update]"
            )
            yield "position", reason
        if self.columns is not None:
            for column in self.key:
                if not self.columns.has(column):
                    yield "columns", f"excludes {column}, which is in key: include it"

    def _unknown(self, described: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
        if all(name.startswith("_") for name in described):
            return
        row: Sequence[str] | None = list(described)
        owner = "a column of the source"
        if self.form == "envelope":
            if AFTER not in described:
                reason = f"is not a column of the source: add {AFTER}, or use form flattened"
                yield "form", f"envelope, but {AFTER} {reason}"
            row = struct_fields(described.get(AFTER) or "")
            owner = f"a field of {AFTER}"
        if row is None:
            return
        for key, names in self._named():
            # The position may be a column besides those of the row.
            have = {*row, *(described if key == "position" else ())}
            for name in names:
                if name not in have:
                    yield key, f"{name!r} is not {owner}: add it there, or use another"

    def _named(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "key", self.key
        if not isinstance(self.position, str):
            yield "position", self.position
        if self.columns is not None:
            yield "columns", self.columns.names

    def warnings(self) -> Iterator[str]:
        """Messages about changes that records of this form do not show."""
        if self.form == "flattened" and self.truncates_when is None:
            yield (
                "form flattened does not show TRUNCATE: the rows stay current until a new "
                "snapshot; form envelope shows it, with the connector's skipped.operations=none"
            )
        if self.form == "rows" and self.deletes_when is None:
            yield (
                "form rows does not show deletes: the row stays current; set deletes_when if a "
                "column marks deleted rows"
            )


def struct_fields(data_type: str) -> list[str] | None:
    """The names of a struct's top-level fields, from its SQL type; None for other types."""
    inside = _STRUCT.fullmatch(data_type)
    if inside is None:
        return None
    parts, depth = [""], 0
    for letter in inside[1]:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    found = (_FIELD.match(part) for part in parts)
    return [match[1] or match[2] for match in found if match is not None]


def _names(value: Any, expected: str) -> tuple[str, ...]:
    """Validate a list of unique column names.

    Raises:
        ValueError: It is not a list of names, or is empty or has duplicates.
    """
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be {expected}")
    for name in value:
        if not isinstance(name, str) or not name:
            raise ValueError(f"must be {expected}")
        if value.count(name) > 1:
            raise ValueError(f"has {name} twice")
    return tuple(value)
