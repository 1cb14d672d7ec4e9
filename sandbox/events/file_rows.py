"""Read a CSV or JSON file row by row, with line numbers."""

from __future__ import annotations

import csv
import json
import re
import string
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, TextIO

from spark_ingest.errors import ConfigurationError

# Precedence of delimiters that split the header equally well.
_USUAL = ",;\t|:"
# Characters of column names are no delimiters.
_NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_-.\"'")
_SPELT = {"\\t": "\t", "tab": "\t"}
_DECODER = json.JSONDecoder(parse_float=Decimal)


@dataclass(frozen=True)
class Row:
    """One row of a file.

    Attributes:
        line: The line on which it starts, from 1.
        values: By column; text from CSV (None for an empty cell), anything from JSON.
        fault: The parse error; ``values`` is empty then.
    """

    line: int
    values: dict[str, Any]
    fault: str = ""


@dataclass(frozen=True)
class Table:
    """A file's rows.

    Attributes:
        rows: Read lazily.
        columns: The CSV header; empty for JSON, where each object has its own names.
        has_header: They stand in the file; without a header they are those expected.
    """

    rows: Iterator[Row]
    columns: Sequence[str]
    has_header: bool = True


def read_table(
    file: TextIO,
    name: str,
    fields: Sequence[str],
    delimiter: str | None = None,
    null: str = "",
    in_headers: Collection[str] = (),
) -> Table:
    """Detect the format of a file and start reading it.

    JSON when its first character is ``[`` or ``{``: an array of objects, or a sequence
    of objects. Everything else is CSV with a header, or without one if ``in_headers`` can
    distinguish the two.

    Args:
        file: Text at its beginning, as ``open_text`` gives it.
        name: The name of the file in errors.
        fields: Expected column names, from which the delimiter is detected. Without a
            header they are the columns, in order.
        delimiter: The delimiter; None detects it.
        null: The cell value that means null.
        in_headers: Every header has one of these names, and no row has one as a cell; empty
            if every file has a header.

    Raises:
        ConfigurationError: Empty file, no header, more cells than fields, or a delimiter of
            several characters.
    """
    first = ""
    while (character := file.read(1)) and not first:
        first = character.strip()
    file.seek(0)
    if not first:
        raise ConfigurationError(f"{name} is empty")
    if delimiter is None and first in "[{":
        return Table(_json_rows(file.read()), ())
    return _csv_table(file, name, fields, delimiter, null, in_headers)


def bare(name: str) -> str:
    """A column name in lower case, without separators of its words."""
    return re.sub(r"[\s_-]", "", name).lower()


def _csv_table(
    file: TextIO,
    name: str,
    fields: Sequence[str],
    delimiter: str | None,
    null: str,
    in_headers: Collection[str],
) -> Table:
    while (header_line := file.readline()) and not header_line.strip():
        pass
    file.seek(0)
    if delimiter is None:
        separator = _separator(header_line, fields, in_headers)
    else:
        separator = _SPELT.get(delimiter, delimiter)
        if len(separator) != 1:
            raise ConfigurationError(
                f"--delimiter {delimiter!r} is not one character (tab is '\\t')"
            )
    reader = csv.reader(file, delimiter=separator, strict=True)
    try:
        line = 1
        while not any(header := next(reader)):
            line = reader.line_num + 1
    except (csv.Error, StopIteration) as error:
        raise ConfigurationError(f"{name}: its header cannot be read") from error
    rows: Iterator[tuple[int, list[str] | csv.Error]] = _numbered(reader)
    columns = [column.strip() for column in header]
    has_header = not in_headers or not {*map(bare, in_headers)}.isdisjoint(map(bare, columns))
    if not has_header:
        columns = [*fields[: len(header)]]
        rows = chain([(line, header)], rows)
        if len(header) > len(columns):
            raise ConfigurationError(
                f"{name}: {len(header)} cells in the first row, none of them"
                f" {' or '.join(in_headers)}, and without a header there are"
                f" {len(fields)} at most: {', '.join(fields)}"
            )
    twice = [column for column in columns if columns.count(column) > 1]
    if twice:
        raise ConfigurationError(f"{name}: duplicate column {twice[0]!r}")
    first = "the header" if has_header else "the first row"
    return Table(_csv_rows(rows, columns, first, null), columns, has_header)


def _numbered(reader: Any) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """The rows, each with the line on which it starts."""
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, error


def _csv_rows(
    rows: Iterator[tuple[int, list[str] | csv.Error]], columns: list[str], first: str, null: str
) -> Iterator[Row]:
    for line, cells in rows:
        if isinstance(cells, csv.Error):
            yield Row(line, {}, f"is not CSV: {cells}")
            continue
        if not cells:
            continue
        if len(cells) != len(columns):
            yield Row(line, {}, f"has {len(cells)} cells, {first} {len(columns)}")
            continue
        values = {
            name: None if cell == null else cell for name, cell in zip(columns, cells, strict=True)
        }
        yield Row(line, values)


def _separator(header: str, fields: Sequence[str], in_headers: Collection[str]) -> str:
    """The character that splits a header into the most of the expected names.

    Without a header, the one whose number of cells is nearest to the number of fields.
    """
    wanted = {bare(name) for name in fields}

    def found(separator: str) -> tuple[int, int]:
        cells = next(csv.reader([header.strip("\r\n")], delimiter=separator), [])
        known = sum(bare(cell) in wanted for cell in cells)
        usual = len(_USUAL) - _USUAL.index(separator) if separator in _USUAL else 0
        return known, usual

    if in_headers:
        cells = {one: next(csv.reader([header.strip("\r\n")], delimiter=one), []) for one in _USUAL}
        if not any(wanted & {*map(bare, split)} for split in cells.values()):
            return min(_USUAL, key=lambda one: abs(len(cells[one]) - len(fields)))
    others = set(header.strip("\r\n")) - _NAME_CHARACTERS
    candidates: list[str] = sorted({*_USUAL, *others})
    return max(candidates, key=found)


def _json_rows(text: str) -> Iterator[Row]:
    """Objects of an array, or a sequence of objects; after an error, resume on the next line."""
    at, line, counted = 0, 1, 0
    in_array = text.lstrip().startswith("[")
    if in_array:
        at = text.index("[") + 1
    while True:
        while at < len(text) and (text[at].isspace() or (text[at] == "," and in_array)):
            at += 1
        line, counted = line + text.count("\n", counted, at), at
        if at >= len(text):
            if in_array:
                yield Row(line, {}, "ends without the closing ] of the array")
            return
        if in_array and text[at] == "]":
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except ValueError as error:
            yield Row(line, {}, f"is not JSON: {error}")
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if isinstance(value, dict):
            yield Row(line, value)
        else:
            yield Row(line, {}, f"is not a JSON object but {json.dumps(value, default=str):.40}")
