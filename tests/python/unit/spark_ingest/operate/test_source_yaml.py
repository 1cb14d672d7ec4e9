"""Columns written into a source's YAML: what was there stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spark_ingest.errors import ConfigurationError
from spark_ingest.operate.column_agreement import NewColumn
from spark_ingest.operate.source_yaml import add_columns

NEW = [
    NewColumn("channel", "string", 'Where it was "sold": {{ not jinja }}'),
    NewColumn("price", "decimal(9,2)", "The price."),
    NewColumn("where", "struct<lat:double,lon:double>", "A place."),
]
FILE = """\
# The shop's events.
sources:
  - name: other
    tables:
      - name: sales
        columns: [{name: a}]
  - name: shop
    tables:
      - name: sales  # the sales
        columns:
          # keys
          - name: id
            description: >
              The id
              of it.
            data_tests: [not_null]

          # metadata
          - name: _kafka_key
            data_type: binary
      - name: bare
        description: "Nothing yet."
"""
ADDED = """\
          - name: channel
            description: "Where it was \\"sold\\": { { not jinja }}"
            data_type: string
          - name: price
            description: "The price."
            data_type: decimal(9,2)
          - name: where
            description: "A place."
            data_type: struct<lat:double,lon:double>
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "_shop__sources.yml"
    path.write_text(FILE)
    return path


def test_columns_are_added_before_the_metadata_and_nothing_else_changes(file: Path) -> None:
    add_columns(file, "shop.sales", NEW)
    text = file.read_text()
    assert text.replace(ADDED, "") == FILE
    (place,) = (at for at, line in enumerate(text.splitlines()) if "channel" in line)
    assert text.splitlines()[place - 1] == "            data_tests: [not_null]"
    written = yaml.safe_load(text)["sources"][1]["tables"][0]["columns"]
    assert [column["name"] for column in written] == [
        "id", "channel", "price", "where", "_kafka_key"
    ]  # fmt: skip


def test_a_table_without_columns_gets_them(file: Path) -> None:
    add_columns(file, "shop.bare", NEW)
    bare = yaml.safe_load(file.read_text())["sources"][1]["tables"][1]
    assert bare["description"] == "Nothing yet."
    assert [column["data_type"] for column in bare["columns"]] == [
        "string", "decimal(9,2)", "struct<lat:double,lon:double>"
    ]  # fmt: skip


def test_a_file_that_ends_without_a_line_end_is_taken_too(file: Path) -> None:
    file.write_text(FILE.rstrip("\n"))
    add_columns(file, "shop.bare", NEW[:1])
    assert file.read_text().startswith(FILE)


def test_columns_that_are_aliases_stand_where_their_table_lists_them(file: Path) -> None:
    anchors = "anchors:\n  - &op {name: op}\n  - &_key {name: _key}\n\n"
    aliases = "        columns:\n          - *op\n          - *_key\n"
    file.write_text(f"{anchors}{FILE}{aliases}")

    add_columns(file, "shop.bare", NEW)

    text = file.read_text()
    assert text.replace(ADDED, "") == f"{anchors}{FILE}{aliases}"
    assert f"          - *op\n{ADDED}          - *_key\n" in text


@pytest.mark.parametrize(
    ("name", "said"), [("other.sales", "are on one line"), ("shop.gone", "does not declare")]
)
def test_what_cannot_be_written_is_refused_and_left(file: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        add_columns(file, name, NEW)
    assert file.read_text() == FILE
