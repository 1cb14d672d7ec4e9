"""What a source says of a captured table: taken where it holds together, else refused by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spark_ingest.captured import Captured, Chosen, struct_fields
from spark_ingest.errors import ConfigurationError
from spark_ingest.sources import read_streams
from tests.python.unit.spark_ingest.test_sources import manifest, node

FLAT = {
    name: {"name": name, "description": "", "data_type": "int"}
    for name in ("id", "name", "seen", "__lsn", "_kafka_offset")
}
ENVELOPE = {
    name: {"name": name, "description": "", "data_type": kind}
    for name, kind in {
        "after": "struct<id:int,name:string,price:decimal(10,2),tags:array<string>>",
        "op": "string",
        "ts_ms": "bigint",
    }.items()
}


def read(folder: Path, captured: dict[str, Any], columns: dict[str, Any], **more: Any) -> Captured:
    meta = {"topic": "t", "captured": captured, **more}
    (stream,) = read_streams(manifest(folder, node("shop", "items", meta, columns=columns)))
    assert stream.ingest.captured is not None
    return stream.ingest.captured


def test_form_and_key_are_enough(tmp_path: Path) -> None:
    captured = read(tmp_path, {"form": "flattened", "key": ["id"]}, FLAT)

    assert (captured.form, captured.key, captured.position) == ("flattened", ("id",), "lsn")
    assert captured.columns is None
    assert captured.database_in("museum") == "museum"


def test_all_that_can_be_said_is_taken(tmp_path: Path) -> None:
    captured = read(
        tmp_path,
        {
            "form": "envelope",
            "key": ["id", "name"],
            "position": ["ts_ms"],
            "deletes_when": "op = 'x'",
            "truncates_when": "op = 'y'",
            "columns": {"all_but": ["tags"]},
            "database": "archive",
        },
        ENVELOPE,
    )

    assert captured.position == ("ts_ms",)
    assert captured.database_in("museum") == "archive"
    assert captured.columns == Chosen(("tags",), all_but=True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"form": "flat"}, "captured.form: Input should be 'flattened', 'envelope'"),
        ({"key": []}, "captured.key: is empty: a table without a key has no history"),
        ({"key": "id"}, "captured.key: must be the columns of the table's primary key"),
        ({"key": ["id", "id"]}, "captured.key: has id twice"),
        ({"kee": 1}, "captured.kee: Extra inputs"),
        ({"position": "scn"}, "captured.position: is 'scn': lsn .*, binlog .*or a list"),
        ({"position": []}, "captured.position: must be lsn, binlog, or columns such as"),
        ({"form": "rows"}, r"captured.position: form rows has no .*such as \[last_update\]"),
        ({"deletes_when": " "}, "captured.deletes_when: is empty"),
        ({"columns": ["name"]}, "captured.columns: excludes id, which is in key"),
        ({"columns": {"but": ["x"]}}, "captured.columns: must be a list of columns, or {all"),
        ({"key": ["nr"]}, "captured.key: 'nr' is not a column of the source"),
        ({"position": ["nr"]}, "captured.position: 'nr' is not a column of the source"),
    ],
)
def test_what_contradicts_is_refused_with_its_key(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    captured = {"form": "flattened", "key": ["id"], **changed}

    with pytest.raises(ConfigurationError, match=said) as caught:
        read(tmp_path, captured, FLAT)

    assert "models/x.yml: source shop.items: config.meta.ingest." in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (FLAT, "captured.form: envelope, but after is not a column of the source"),
        (ENVELOPE, "captured.key: 'nr' is not a field of after"),
    ],
)
def test_an_envelope_has_its_columns_in_after(
    tmp_path: Path, columns: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read(tmp_path, {"form": "envelope", "key": ["nr"]}, columns)


def test_columns_that_nobody_described_are_not_asked_for(tmp_path: Path) -> None:
    of_ingest = {"_kafka_offset": FLAT["_kafka_offset"]}
    untyped = {"after": {"name": "after", "description": "", "data_type": None}}

    assert read(tmp_path, {"form": "flattened", "key": ["nr"]}, {}).key == ("nr",)
    assert read(tmp_path, {"form": "flattened", "key": ["nr"]}, of_ingest).key == ("nr",)
    assert read(tmp_path, {"form": "envelope", "key": ["nr"]}, untyped).key == ("nr",)


def test_records_of_one_column_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="captured: a row has columns, but"):
        read(tmp_path, {"form": "rows", "key": ["id"]}, {}, framing="string")


def test_what_a_form_cannot_show_is_said_unless_a_condition_shows_it() -> None:
    flat = {"form": "flattened", "key": ["id"]}
    rows = {"form": "rows", "key": ["id"], "position": ["seen"]}

    def reported(captured: dict[str, Any]) -> str:
        return " ".join(Captured.model_validate(captured).warnings())

    assert "form flattened does not show TRUNCATE" in reported(flat)
    assert "form rows does not show deletes" in reported(rows)
    assert not reported({"form": "envelope", "key": ["id"]})
    assert not reported({**flat, "truncates_when": "kind = 't'"})
    assert not reported({**rows, "deletes_when": "is_gone"})


@pytest.mark.parametrize(
    ("data_type", "names"),
    [
        ("struct<id:int,price:decimal(10,2)>", ["id", "price"]),
        ("STRUCT<a int, b: struct<c:int,d:int>, `e f`:array<string>>", ["a", "b", "e f"]),
        ("array<struct<a:int>>", None),
        ("int", None),
    ],
)
def test_a_structs_own_fields_are_read_from_its_type(
    data_type: str, names: list[str] | None
) -> None:
    assert struct_fields(data_type) == names


def test_a_table_is_named_by_its_topic_or_by_itself() -> None:
    by_topic = Captured(form="flattened", key=["id"])
    by_name = Captured(form="flattened", key=["id"], table="public.film")

    assert by_topic.table_in("moma.public.artists") == "public.artists"
    assert by_name.table_in("films") == "public.film"
    with pytest.raises(ValidationError, match="with its schema"):
        Captured(form="flattened", key=["id"], table="film")
