"""Match the columns of a file to the fields of a stream or the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox import ui
from sandbox.events.fields import Field, InvalidValue
from sandbox.events.file_rows import Row, bare
from spark_ingest.errors import ConfigurationError


@dataclass
class Matching:
    """Maps the names in a file's rows to fields.

    Attributes:
        owner: The stream or table that has the fields.
        columns: Column or JSON name by field, where the names differ.
        constants: Value by field, as text or null, for every row; overrides the row.
    """

    owner: str
    fields: Sequence[Field]
    columns: Mapping[str, str]
    constants: Mapping[str, str | None]
    # The names of the previous row and their fields: most rows have the same names.
    _names: tuple[str, ...] = ()
    _matched: dict[str, str] = field(default_factory=dict)
    _noted: bool = False

    def check(self, header: Sequence[str]) -> None:
        """Check the options, and the header when there is one.

        Raises:
            ConfigurationError: An option has an unknown field or column or an invalid value,
                or a column is missing.
        """
        known = {one.name: one for one in self.fields}
        for name in (*self.columns, *self.constants):
            if name not in known:
                option = "--column" if name in self.columns else "--set"
                raise ConfigurationError(
                    f"{option} {name}: {self.owner} has no such field; it has: {listed([*known])}"
                )
        for name in self.constants:
            try:
                known[name].converted(self.constants)
            except InvalidValue as invalid:
                raise ConfigurationError(f"--set {invalid}") from invalid
        if not header:
            return
        for name, column in self.columns.items():
            if column not in header:
                raise ConfigurationError(
                    f"--column {name}={column}: the file has no such column;"
                    f" it has: {listed(header)}"
                )
        self._match(tuple(header))
        found = {*self._matched, *self.constants}
        for wanted in self.fields:
            if wanted.required and wanted.name not in found:
                raise ConfigurationError(
                    f"column {wanted.name} is missing; {self.owner} needs it,"
                    f" and the file has: {listed(header)}; `--column"
                    f" {wanted.name}=COLUMN` names another, `--set {wanted.name}=VALUE`"
                    " gives every row the same"
                )

    def values(self, row: Row, used: Iterable[str | None] = ()) -> dict[str, Any]:
        """The values of a row by field; absent fields are missing.

        ``used`` are columns that are used otherwise.

        Raises:
            InvalidValue: The row cannot be parsed.
        """
        if row.fault:
            raise InvalidValue(row.fault)
        names = tuple(row.values)
        if names != self._names:
            self._match(names)
            self.note_unused(names, used)
        values = {known: row.values[name] for known, name in self._matched.items()}
        return {**values, **self.constants}

    def note_unused(self, names: Iterable[str], used: Iterable[str | None] = ()) -> None:
        """Log once which columns are not used."""
        taken = {*self._matched.values(), *used}
        unused = [name or "(no name)" for name in names if name not in taken]
        if unused and not self._noted:
            self._noted = True
            ui.say(f"note: {self.owner} has no such columns, they are ignored: {listed(unused)}")

    def _match(self, names: tuple[str, ...]) -> None:
        """Match the names of a row to fields.

        By ``columns``; otherwise by the same name, ignoring case, ``_``, ``-`` and blanks if
        needed: ``ProductId`` is ``product_id``. A name that starts with ``_`` is private: it
        matches only by ``columns`` or exactly.
        """
        self._names, self._matched = names, {}
        public = [name for name in names if not name.startswith("_")]
        lower = {name.lower(): name for name in public}
        separated = {bare(name): name for name in public}
        own = set(self.columns.values())
        for known in (one.name for one in self.fields):
            name = self.columns.get(known)
            if name is None:
                likely = (known, lower.get(known.lower()), separated.get(bare(known)))
                name = next((n for n in likely if n in names and n not in own), None)
            if name in names and name is not None:
                self._matched[known] = name


def listed(names: Sequence[str]) -> str:
    """Names as a list in an error."""
    return ", ".join(names)
