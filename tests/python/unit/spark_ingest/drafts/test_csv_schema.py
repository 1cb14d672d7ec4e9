"""What a CSV's columns are, by its header and first rows."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest

from spark_ingest.drafts.csv_schema import ROWS, CsvShape, read_shape
from spark_ingest.errors import ConfigurationError

DATE = {"type": "int", "logicalType": "date"}
MOMENT = {"type": "long", "logicalType": "timestamp-micros"}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def shape(text: str, key: str = "id", **more: Any) -> CsvShape:
    return read_shape(StringIO(text), "orders.csv", "shop.orders", key, **more)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-20", "0"], "long"),
        (["00123", "12345"], "string"),
        (["9223372036854775808"], decimal(38, 2)),
        (["1", "2.5"], decimal(18, 2)),
        (["0.1234", ".5"], decimal(18, 4)),
        (["12345678901234567.5"], decimal(38, 2)),
        (["1" * 39], "string"),
        (["."], "string"),
        (["1e5"], "string"),
        (["true", "False", "yes"], "boolean"),
        (["0", "1"], "long"),
        (["true", "1"], "string"),
        (["2026-01-05", "2026-02-28"], DATE),
        (["2026-02-30"], "string"),
        (["20260105"], "long"),
        (["2026-W01-1"], "string"),
        (["2026-01-05 10:00:00", "2026-01-05T10:00:00.5Z"], MOMENT),
        (["2026-01-05 10:00:00 +02:00"], MOMENT),
        (["2026-01-05", "2026-01-05 10:00"], MOMENT),
        (["2026-01-05 at ten"], "string"),
        (["", ""], "string"),
        (["1", "", "2"], "long"),
        (["Ada", "1"], "string"),
    ],
)
def test_a_column_is_what_all_of_its_cells_are(cells: list[str], kind: Any) -> None:
    rows = "".join(f"{at},{cell}\n" for at, cell in enumerate(cells))

    found = shape(f"id,cell\n{rows}")

    assert found.value["fields"] == [
        {"name": "id", "type": "long"},
        {"name": "cell", "type": ["null", kind], "default": None},
    ]


def test_the_key_has_its_columns_type_and_is_never_null() -> None:
    text = "\n\nOrder No.;PlacedAt\na1;2026-01-05\n"

    by_header, by_field = shape(text, "Order No."), shape(text, "order_no")

    assert by_header == by_field
    assert by_header.key == {"type": "string"}
    assert by_header.key_field == "order_no"
    assert by_header.separator == ";"
    assert by_header.headers == {"order_no": "Order No.", "placed_at": "PlacedAt"}
    assert by_header.value["name"] == "ShopOrders"
    assert by_header.value["fields"][0] == {"name": "order_no", "type": "string"}
    assert shape(text.replace("a1", "2026-01-01"), "order_no").key == DATE


def test_rows_with_other_cells_than_the_header_say_nothing_of_columns() -> None:
    found = shape("id,cell\n1,2\n3,4,5\nx\n")

    assert found.value["fields"][1]["type"] == ["null", "long"]


def test_the_first_rows_say_what_columns_are() -> None:
    rows = "".join(f"{at},1\n" for at in range(ROWS))

    found = shape(f"id,cell\n{rows}x,y\n")

    assert [field["type"] for field in found.value["fields"]] == ["long", ["null", "long"]]


def test_a_word_for_null_is_no_cell() -> None:
    found = shape("id|cell\n1|\\N\n2|7\n", null="\\N", separator="|")

    assert found.value["fields"][1]["type"] == ["null", "long"]


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("", "id", "orders.csv is empty: its first line must have the column names"),
        ("id,n\n", "id", "no row has the 2 cells of the header"),
        ("id,n\n1,2\n", "order", "--key order: orders.csv has no such column; there are: id, n"),
        ("id,Id\n1,2\n", "id", "'id' and 'Id' would both be id: rename one"),
        ("id,2nd\n1,2\n", "id", "column '2nd' of the header is not a valid name"),
        ("id,\n1,2\n", "id", "column '' of the header is not a valid name"),
        ("id,n\n1,2\n,3\n", "id", "orders.csv, line 3: id is empty, but is the key"),
        ('id,n\n1,"2\n', "id", "orders.csv, line 2, is not CSV"),
    ],
)
def test_a_file_that_will_not_do_is_refused_with_the_fix(text: str, key: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        shape(text, key)
