"""A captured table as its source and its history declare it, and what its records look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

ATTRIBUTES = ["name", "note", "rank"]
LEFT_OUT = "__debezium_unavailable_value"
_TYPES = {"name": "string", "note": "string", "rank": "int"}
EPOCH = datetime.fromisoformat("1970-01-01")
# Texts that join, quote, escape or end at the wrong place.
_ODD = ["a", "a-b", "b-", "-", "~", "~1", "x'y", "back\\slash", "ü" * 100, "long" * 50]

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Options:
    """What a table's source and its history say of it.

    Attributes:
        form: ``flattened``, ``envelope`` or ``rows``.
        position: ``lsn``, ``binlog``, ``numbers`` (two columns) or ``moment`` (a time and a
            number); the last two with the form ``rows`` alone.
        keys: ``number``, ``text`` or ``compound``, two texts.
        track: The attributes whose change makes a version; none: all.
        ignore_null_updates: Those that an update with null leaves as they were.
        left_out: Those that an update may leave out of the log.
        truncates: Whether a record may empty the table.
        restarts_at: When the database's log restarted; none: never.
        looks_for_restarts: Whether a build stops where the log seems to have restarted.
    """

    form: str = "flattened"
    position: str = "lsn"
    keys: str = "number"
    track: tuple[str, ...] | None = None
    ignore_null_updates: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    truncates: bool = False
    restarts_at: datetime | None = None
    looks_for_restarts: bool = False

    @property
    def log_restarts(self) -> list[str] | None:
        """The entry of the database in the variable of that name; none: it has none."""
        if self.restarts_at is not None:
            return [f"{self.restarts_at}Z"]
        return None if self.looks_for_restarts else []

    @property
    def key_types(self) -> Mapping[str, str]:
        if self.keys == "compound":
            return {"key_one": "string", "key_two": "string"}
        return {"key_one": "int" if self.keys == "number" else "string"}

    def key(self, row: int) -> Key:
        """The key of a row by its number."""
        if self.keys == "number":
            return (row - 5,)
        if self.keys == "text":
            return (f"{_ODD[row % 10]}{row // 10}",)
        return _ODD[row % 10], _ODD[row // 10 % 10]

    @property
    def row_types(self) -> Mapping[str, str]:
        """The columns of the database's table."""
        return {**self.key_types, **_TYPES}

    def position_columns(self, position: int) -> Mapping[str, Any]:
        """A position in the log as the columns that a record has."""
        first, second = divmod(position, 7)
        columns: Mapping[str, Mapping[str, Any]] = {
            "lsn": {"lsn": position},
            "binlog": {"file": f"bin.{first:06d}", "pos": second, "row": 0},
            "numbers": {"first_number": first, "second_number": second},
            "moment": {"moved_at": self.moment(position), "second_number": second},
        }
        return columns[self.position]

    @staticmethod
    def moment(position: int) -> datetime:
        """When, of a table whose positions are times: some before 1970."""
        return EPOCH + timedelta(seconds=position // 7)

    def position_text(self, log: int, position: int) -> str:
        """A position as its history writes it.

        Args:
            log: How often the database's log had restarted.
            position: In that log.
        """
        first, second = divmod(position, 7)
        parts: Mapping[str, Callable[[], str]] = {
            "lsn": lambda: f"{position:020d}",
            "binlog": lambda: f"{first:010d}-{second:020d}-{0:011d}",
            "numbers": lambda: f"{_number(first)}-{_number(second)}",
            "moment": lambda: f"{_number(first * 1_000_000)}-{_number(second)}",
        }
        text = parts[self.position]()
        if self.restarts_at is None:
            return text
        return f"{log:03d}/{text}"

    @property
    def captured(self) -> Mapping[str, Any]:
        """``config.meta.ingest.captured``."""
        declared: dict[str, Any] = {"form": self.form, "key": list(self.key_types)}
        declared["position"] = {
            "numbers": ["first_number", "second_number"],
            "moment": ["moved_at", "second_number"],
        }.get(self.position, self.position)
        declared["columns"] = list(self.row_types)
        if self.form == "rows":
            declared["columns"] += declared["position"]
            declared["deletes_when"] = "records.is_gone"
        if self.truncates and self.form != "envelope":
            declared["truncates_when"] = "records.__op = 't'"
        return declared


def _number(number: int) -> str:
    return f"{number:020d}" if number >= 0 else f"-{number + 2**63 - 1:019d}"
