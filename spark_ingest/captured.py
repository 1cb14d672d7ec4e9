"""What a source says of a table that is captured from a database: its key and its changes.

Bronze takes its records like any others. This is for what is made of them behind it, and for
the time before anything was captured, when there is neither a topic nor a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

# The field of an envelope that has the row as it is after a change.
AFTER = "after"
_LOG_POSITIONS = ("lsn", "binlog")
_STRUCT = re.compile(r"\s*struct\s*<(.*)>\s*", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(?:`([^`]*)`|([^\s:`]+))")

Form = Literal["flattened", "envelope", "rows"]


@dataclass(frozen=True)
class Chosen:
    """Some columns of a table.

    Attributes:
        names: Their names, or those of all the others.
        all_but: Whether it is all columns but the named ones.
    """

    names: tuple[str, ...]
    all_but: bool = False

    def has(self, column: str) -> bool:
        """Whether a column is one of them."""
        return (column in self.names) != self.all_but


class Captured(BaseModel):
    """``config.meta.ingest.captured`` of a dbt source table.

    Attributes:
        form: What a record holds: the row and what the connector adds to it (``flattened``),
            the row before and after the change (``envelope``), or the row alone (``rows``).
        key: The table's primary key, by the database's names.
        position: What says which of two changes of a row is the later one: the place in the
            database's log, or columns.
        deletes_when: SQL condition that holds for a record which deletes its row, where the
            form does not have that.
        truncates_when: The same for one which deletes all rows.
        columns: The columns that state and history have; None for all.
        table: ``schema.table`` in the database, or ``database.table`` in MariaDB; None where
            the topic is named after it.
        database: The name of its database in ``databases`` of the profile and in dbt's
            variable ``log_restarts``; None where it is that of the dbt source.
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
                "is empty: a table without key has no history, for nothing identifies the row that "
                "a change is of; name columns that are unique together, or leave `captured` out"
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
            raise ValueError("is empty: give an SQL condition, or leave it out")
        return condition

    @field_validator("table")
    @classmethod
    def _table(cls, table: str | None) -> str | None:
        if table is not None and not all(table.partition(".")):
            raise ValueError(f"is {table!r}: write it with its schema, like public.film")
        return table

    @field_validator("columns", mode="plain")
    @classmethod
    def _chosen(cls, chosen: Any) -> Chosen:
        wanted = "a list of columns, or {all_but: [columns]}"
        if isinstance(chosen, Mapping):
            if list(chosen) != ["all_but"]:
                raise ValueError(f"must be {wanted}")
            return Chosen(_names(chosen["all_but"], wanted), all_but=True)
        return Chosen(_names(chosen, wanted))

    def database_in(self, source: str) -> str:
        """The name of its database, for a table of a dbt source."""
        return self.database or source

    def table_in(self, topic: str) -> str:
        """The table in its database; Debezium's topics end in its schema and its name."""
        return self.table or ".".join(topic.split(".")[-2:])

    def mistake(self, described: Mapping[str, str | None]) -> tuple[str, str] | None:
        """The first key that contradicts another one or the source's columns, and how.

        ``described`` has the source's columns with their data types; nothing is compared with
        what they do not describe.
        """
        return next(chain(self._contradictions(), self._unknown(described)), None)

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if self.form == "rows" and isinstance(self.position, str):
            said = (
                "rows carry no place in the database's log: name the columns that say which of "
                "two rows is the later one, such as [last_update]"
            )
            yield "position", said
        if self.columns is not None:
            for column in self.key:
                if not self.columns.has(column):
                    yield "columns", f"leaves out {column}, which is in key: keep it"

    def _unknown(self, described: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
        if all(name.startswith("_") for name in described):
            return
        row: Sequence[str] | None = list(described)
        place = "the source's columns"
        if self.form == "envelope":
            if AFTER not in described:
                said = f"is none of the source's columns: describe {AFTER}, or say flattened"
                yield "form", f"envelope, but {AFTER} {said}"
            row = struct_fields(described.get(AFTER) or "")
            place = f"the fields of {AFTER}"
        if row is None:
            return
        for key, names in self._named():
            # A change's position may stand beside the row.
            have = {*row, *(described if key == "position" else ())}
            for name in names:
                if name not in have:
                    said = f"is none of {place}: describe it there, or name another"
                    yield key, f"{name!r} {said}"

    def _named(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "key", self.key
        if not isinstance(self.position, str):
            yield "position", self.position
        if self.columns is not None:
            yield "columns", self.columns.names

    def warnings(self) -> Iterator[str]:
        """What the records of this form cannot show, for people."""
        if self.form == "flattened" and self.truncates_when is None:
            yield (
                "form flattened never shows a TRUNCATE: the rows stay as they were until a new "
                "snapshot; form envelope shows it, with the connector's skipped.operations=none"
            )
        if self.form == "rows" and self.deletes_when is None:
            yield (
                "form rows never shows a delete: the row stays as it was; give deletes_when "
                "where a column has it"
            )


def struct_fields(data_type: str) -> list[str] | None:
    """The names of a struct's own fields, by the SQL of its type; None for another type."""
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


def _names(value: Any, wanted: str) -> tuple[str, ...]:
    """Column names, each once.

    Raises:
        ValueError: It is no list of names, an empty one, or one has a name twice.
    """
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be {wanted}")
    for name in value:
        if not isinstance(name, str) or not name:
            raise ValueError(f"must be {wanted}")
        if value.count(name) > 1:
            raise ValueError(f"names {name} twice")
    return tuple(value)
