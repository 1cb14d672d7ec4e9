"""Infer Avro schemas from the header and first rows of a CSV file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Any, TextIO

from spark_ingest.drafts.captured_columns import snake_case
from spark_ingest.errors import ConfigurationError

ROWS = 1_000
"""Number of rows for type inference."""
# In order of preference, if several split the header into equally many cells.
_SEPARATORS = ",;\t|:"
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(0|[1-9]\d*)?(\.(?P<scale>\d+))?", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", re.ASCII)
_BLANK_BEFORE_ZONE = re.compile(r"\s+(?=[+-]\d|[zZ]$)")
_BOOLEANS = frozenset({"true", "false", "t", "f", "yes", "no"})
_LARGEST = 2**63
# Amounts of money have two decimals, whatever the first rows have.
_PRECISION, _SCALE = 18, 2
_WIDEST = 38


@dataclass(frozen=True)
class CsvShape:
    """The schemas of the records of a CSV file.

    Attributes:
        value: Avro schema of the values.
        key: Avro schema of the keys.
        key_field: The field of the value that is the key.
        headers: Column name in the file, by field.
        separator: Separator of the cells.
    """

    value: dict[str, Any]
    key: dict[str, Any]
    key_field: str
    headers: Mapping[str, str]
    separator: str


def read_shape(
    file: TextIO, name: str, topic: str, key: str, separator: str | None = None, null: str = ""
) -> CsvShape:
    """Infer the columns of a CSV file.

    A column is boolean, integer, decimal, date or timestamp if all its cells in the first rows
    are, else string. Integers with leading zeros, such as postcodes, are strings. All columns
    except the key are nullable. ``file`` is at its start, ``name`` is for errors. ``key`` is a
    column name in the file or a field name; ``separator`` is inferred if None, and ``null`` is
    the text of null cells.

    Raises:
        ConfigurationError: There is no header or no row, a column name is invalid or duplicate,
            or the key does not exist or is null in a row.
    """
    header_line = next((line for line in file if line.strip()), "")
    file.seek(0)
    if separator is None:
        separator = max(_SEPARATORS, key=header_line.count)
    rows = _rows(csv.reader(file, delimiter=separator, strict=True), name)
    _, header = next(rows, (0, []))
    names = _field_names([cell.strip() for cell in header], name)
    chosen = key if key in names else {v: k for k, v in names.items()}.get(key)
    if chosen is None:
        raise ConfigurationError(
            f"--key {key}: {name} has no such column; there are: {', '.join(names.values())}"
        )
    read = [(line, row) for line, row in islice(rows, ROWS) if len(row) == len(names)]
    if not read:
        raise ConfigurationError(
            f"{name}: no row has the {len(names)} cells of the header, to infer the types: add one"
        )
    fields = []
    for at, field in enumerate(names):
        cells = [(line, row[at].strip()) for line, row in read if row[at] != null]
        kind = _kind([cell for _, cell in cells])
        if field == chosen:
            _check_key(name, key, {line for line, _ in read} - {ln for ln, _ in cells})
            fields.append({"name": field, "type": kind})
            key_type = kind
        else:
            fields.append({"name": field, "type": ["null", kind], "default": None})
    record = {"type": "record", "name": "".join(map(str.title, _words(topic)))}
    return CsvShape(
        value={**record, "fields": fields},
        key=key_type if isinstance(key_type, dict) else {"type": key_type},
        key_field=chosen,
        headers=names,
        separator=separator,
    )


def _rows(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with their last line numbers."""
    try:
        for row in reader:
            if any(row):
                yield reader.line_num, row
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}, is not CSV: {error}") from error


def _words(topic: str) -> list[str]:
    return snake_case(topic).split("_")


def _field_names(header: Sequence[str], name: str) -> dict[str, str]:
    """The column name in the file by field name."""
    if not header:
        raise ConfigurationError(f"{name} is empty: its first line must have the column names")
    names: dict[str, str] = {}
    for cell in header:
        field = snake_case(cell)
        if not field[:1].isalpha():
            raise ConfigurationError(
                f"{name}: column {cell!r} of the header is not a valid name: start it with a "
                "letter from a to z"
            )
        if field in names:
            raise ConfigurationError(
                f"{name}: the columns {names[field]!r} and {cell!r} would both be {field}: "
                "rename one in the header"
            )
        names[field] = cell
    return names


def _check_key(name: str, key: str, empty: Iterable[int]) -> None:
    lines = sorted(empty)
    if lines:
        raise ConfigurationError(
            f"{name}, line {lines[0]}: {key} is empty, but is the key: add a value, or give a "
            "column by --key that is never empty"
        )


def _kind(cells: Sequence[str]) -> Any:
    """The Avro type for all cells of a column."""
    if not cells:
        return "string"
    kinds: tuple[tuple[Callable[[str], bool], Any], ...] = (
        (lambda cell: cell.lower() in _BOOLEANS, "boolean"),
        (_is_integer, "long"),
        (_is_date, {"type": "int", "logicalType": "date"}),
        (_is_moment, {"type": "long", "logicalType": "timestamp-micros"}),
    )
    for fits, kind in kinds:
        if all(map(fits, cells)):
            return kind
    return _decimal(cells) or "string"


def _is_integer(cell: str) -> bool:
    return bool(_INTEGER.fullmatch(cell)) and -_LARGEST <= int(cell) < _LARGEST


def _is_date(cell: str) -> bool:
    try:
        date.fromisoformat(cell)
    except ValueError:
        return False
    # Exclude the ISO 8601 forms without hyphens, which are numbers, and with weeks.
    return "-" in cell and "W" not in cell


def _is_moment(cell: str) -> bool:
    if not _MOMENT.fullmatch(cell):
        return False
    try:
        datetime.fromisoformat(_BLANK_BEFORE_ZONE.sub("", cell))
    except ValueError:
        return False
    return True


def _decimal(cells: Sequence[str]) -> dict[str, Any] | None:
    """A decimal type for all cells; None if one is not a number."""
    scale, whole = _SCALE, 1
    for cell in cells:
        found = _DECIMAL.fullmatch(cell)
        if found is None or not any(map(str.isdigit, cell)):
            return None
        scale = max(scale, len(found["scale"] or ""))
        whole = max(whole, len(found[1] or ""))
    if scale + whole > _WIDEST:
        return None
    precision = _PRECISION if scale + whole <= _PRECISION else _WIDEST
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
