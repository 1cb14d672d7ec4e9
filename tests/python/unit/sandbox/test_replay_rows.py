"""A person's own rows for a table: with and without header, and what a column takes."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sandbox.databases.columns import Column
from sandbox.events.column_fields import column_field
from sandbox.events.fields import InvalidValue
from sandbox.events.file_rows import Table, read_table
from sandbox.events.replay import replay
from spark_ingest.drafts.text_file import open_text
from spark_ingest.errors import ConfigurationError

COLUMNS = ["artist_id", "name", "nationality", "gender", "birth_year", "death_year"]


def read(folder: Path, text: str, null: str = "", keys: tuple[str, ...] = ("artist_id",)) -> Table:
    file = folder / "rows.txt"
    file.write_text(text, "utf-8")
    with open_text(file) as opened:
        found = read_table(opened, "rows.txt", COLUMNS, None, null, keys)
        return Table(iter(list(found.rows)), found.columns, found.has_header)


def test_a_file_without_a_header_has_the_tables_columns_in_their_order(tmp_path: Path) -> None:
    table = read(tmp_path, '3|"Bill | Arnold, Jr."|American||1941|\n')
    assert not table.has_header
    (row,) = table.rows
    assert row.line == 1
    assert row.values == dict(
        zip(COLUMNS, ["3", "Bill | Arnold, Jr.", "American", None, "1941", None], strict=True)
    )


def test_cells_that_are_left_out_at_the_end_are_no_columns_of_the_file(tmp_path: Path) -> None:
    table = read(tmp_path, "\n3|Bill Arnold|American\n4|Kay|\n5|Kim\n")
    assert table.columns == COLUMNS[:3]
    rows = list(table.rows)
    assert [row.line for row in rows] == [2, 3, 4]
    assert rows[2].fault == "has 2 cells, the first row 3"


def test_a_header_is_known_by_the_key_however_it_is_written(tmp_path: Path) -> None:
    table = read(tmp_path, "Artist ID|Name|Extra\n3|Bill|x\n")
    assert table.has_header
    assert [row.values for row in table.rows] == [{"Artist ID": "3", "Name": "Bill", "Extra": "x"}]
    renamed = read(tmp_path, "ConstituentID|Name\n3|Bill\n", keys=("ConstituentID",))
    assert renamed.has_header


def test_more_cells_than_columns_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="7 cells in the first row, none of them"):
        read(tmp_path, "3|Bill|American|Male|1941||x\n")


def test_the_cell_that_is_null_can_be_named_and_then_an_empty_one_is_text(tmp_path: Path) -> None:
    table = read(tmp_path, "3|Bill|NULL||1941|NULL\n", null="NULL")
    (row,) = table.rows
    assert (row.values["nationality"], row.values["gender"]) == (None, "")
    assert row.values["death_year"] is None


def test_a_packed_file_is_read_and_a_damaged_one_is_one_clear_error(tmp_path: Path) -> None:
    packed = tmp_path / "rows.txt.gz"
    packed.write_bytes(gzip.compress("3|Bill|Café\n".encode()))
    with open_text(packed) as text:
        assert text.read() == "3|Bill|Café\n"
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ConfigurationError, match="cannot be decompressed"):
        open_text(packed)
    packed.write_text("3|Bill")
    with pytest.raises(ConfigurationError, match="cannot be read: Not a gzipped"):
        open_text(packed)


def column(kind: str, **more: Any) -> Column:
    numbers = dict.fromkeys(("length", "precision", "scale", "fraction"))
    whole = {**numbers, "nullable": False, "has_default": False, **more}
    return Column(name="c", type=kind, **whole)


@pytest.mark.parametrize(
    ("kind", "more", "written", "value"),
    [
        ("smallint", {}, "-7", -7),
        ("tinyint(1)", {"precision": 3, "scale": 0}, "true", True),
        ("int(11)", {"precision": 10, "scale": 0}, "12", 12),
        ("numeric", {"precision": 10, "scale": 3}, "1.50", Decimal("1.500")),
        ("decimal(8,2)", {"precision": 8, "scale": 2}, "600.1", Decimal("600.10")),
        ("boolean", {}, "t", True),
        ("date", {}, "2021-05-10", date(2021, 5, 10)),
        (
            "timestamp with time zone",
            {"fraction": 6},
            "2021-05-10 13:04:06.9+02",
            datetime(2021, 5, 10, 11, 4, 6, 900_000, UTC),
        ),
        (
            "datetime",
            {"fraction": 0},
            "2008-01-24 06:43:29",
            datetime(2008, 1, 24, 6, 43, 29, 0, UTC).replace(tzinfo=None),
        ),
        ("varchar(4)", {"length": 4}, "Café", "Café"),
        ("ARRAY", {}, "{Trailers}", "{Trailers}"),
        ("USER-DEFINED", {}, "PG-13", "PG-13"),
    ],
)
def test_a_cell_becomes_what_its_column_holds(
    kind: str, more: dict[str, Any], written: str, value: object
) -> None:
    assert column_field(column(kind, **more)).converted({"c": written}) == value


@pytest.mark.parametrize(
    ("kind", "more", "written", "reason"),
    [
        ("smallint", {}, "99999", "c '99999' is beyond a 16-bit integer"),
        ("integer", {}, "1.5", "c '1.5' is not a whole number"),
        (
            "numeric",
            {"precision": 10, "scale": 3},
            "1.2345",
            "c '1.2345' has 4 decimals, 3 are kept",
        ),
        (
            "character varying",
            {"length": 3},
            "Café",
            "c 'Café' has 4 characters, the column takes 3",
        ),
        ("text", {}, "a\0b", r"c 'a\x00b' has a NUL character, which text must not contain"),
        (
            "datetime",
            {"fraction": 0},
            "2008-01-01 00:00:00.5",
            "c '2008-01-01 00:00:00.5' is finer than the column, which keeps 0 digits",
        ),
        ("boolean", {}, "maybe", "c 'maybe' is neither true nor false"),
        ("text", {}, None, "c is empty, and needs a value"),
    ],
)
def test_a_value_that_a_column_rejects_is_reported_with_its_name(
    kind: str, more: dict[str, Any], written: str | None, reason: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        column_field(column(kind, **more)).converted({"c": written})
    assert str(refused.value) == reason


def test_rows_go_to_a_stream_or_to_a_table_and_not_to_both(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="choose a target"):
        replay(tmp_path / "rows.txt")
    with pytest.raises(ConfigurationError, match="choose a target"):
        replay(tmp_path / "rows.txt", "pagila.sales", "moma.artists")
    with pytest.raises(ConfigurationError, match="--timestamps belongs to --stream"):
        replay(tmp_path / "rows.txt", table="moma.artists", timestamps="born")


def test_an_unknown_table_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("1|a\n")
    with pytest.raises(ConfigurationError, match=r"known: moma\.artists"):
        replay(file, table="moma.artist")
