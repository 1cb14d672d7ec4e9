"""Rows of a file: valid ones are encoded, invalid ones are reported with line and reason."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from sandbox.events.encode_row import RowEncoder, fields_of
from sandbox.events.fields import InvalidValue
from sandbox.events.file_rows import read_table
from sandbox.events.replay import Replay, replay
from sandbox.streams import STREAMS, Stream
from sandbox.streams.timeline import Record
from spark_ingest.drafts.text_file import open_text
from spark_ingest.errors import ConfigurationError

STREAM = STREAMS["pagila.sales"]
PRODUCTS = STREAMS["smoothies.products"]
PURCHASES = STREAMS["smoothies.purchases"]
HEADER = "payment_id,customer_id,amount,payment_date,city,district,country"
ROW = "7,42,3.99,2021-05-10 13:04:06.996577+00,Usak,,Turkey"
SALE = {
    "payment_id": 7,
    "customer_id": 42,
    "amount": Decimal("3.99"),
    "payment_date": datetime(2021, 5, 10, 13, 4, 6, 996_000, UTC),
    "city": "Usak",
    "district": None,
    "country": "Turkey",
}


def replayed(
    folder: Path,
    text: str | bytes,
    timestamps: str | None = None,
    delimiter: str | None = None,
    stream: Stream = STREAM,
    columns: dict[str, str] | None = None,
    constants: dict[str, str | None] | None = None,
) -> tuple[list[Record], Replay]:
    file = folder / "rows"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    names = [field.name for field in fields_of(stream)]
    with open_text(file) as opened:
        table = read_table(opened, str(file), names, delimiter)
        run = Replay(stream, table, timestamps, columns or {}, constants or {})
        return list(run.records(RowEncoder(stream, 3, 4))), run


def decoded(record: Record, stream: Stream = STREAM) -> Any:
    assert record.value[:5] == b"\x00\x00\x00\x00\x04"
    body = BytesIO(record.value[5:])
    value = schemaless_reader(body, parse_schema(stream.value_schema), None)
    assert body.read() == b""
    return value


@pytest.mark.parametrize("separator", [",", ";", "|", "\t", "~", " ", "^"])
def test_any_delimiter_is_found_out(tmp_path: Path, separator: str) -> None:
    row = ROW.replace(" ", "T").replace(",", separator)
    records, _ = replayed(tmp_path, f"{HEADER.replace(',', separator)}\n{row}\n")
    assert [decoded(record) for record in records] == [SALE]


def test_a_delimiter_can_be_forced(tmp_path: Path) -> None:
    text = f"{HEADER}\n{ROW}\n".replace(",", "\t")
    assert len(replayed(tmp_path, text, delimiter="\\t")[0]) == 1
    with pytest.raises(ConfigurationError, match="one character"):
        replayed(tmp_path, text, delimiter="||")


def test_keys_are_the_streams_key_field_framed(tmp_path: Path) -> None:
    records, _ = replayed(tmp_path, f"{HEADER}\n{ROW}\n")
    assert records[0].key == b"\x00\x00\x00\x00\x03" + bytes([84])


@pytest.mark.parametrize(
    "written",
    [
        "2021-05-10 13:04:06.996577+00",
        "2021-05-10 13:04:06.996577 +00:00",
        "2021-05-10T15:04:06.996577+02:00",
        "1620651846996",
    ],
)
def test_times_in_all_spellings_are_cut_to_milliseconds(tmp_path: Path, written: str) -> None:
    text = f"{HEADER}\n{ROW.replace('2021-05-10 13:04:06.996577+00', written)}\n"
    records, _ = replayed(tmp_path, text, timestamps="payment_date")
    assert decoded(records[0]) == SALE
    assert records[0].timestamp == 1_620_651_846_996


def test_any_column_can_be_the_timestamp_and_others_are_noted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{HEADER},arrived,note\n{ROW},2021-05-10 14:00,x\n{ROW},2021-05-10 15:00,y\n"
    records, _ = replayed(tmp_path, text, timestamps="arrived")
    assert [record.timestamp for record in records] == [1_620_655_200_000, 1_620_658_800_000]
    assert capsys.readouterr().err.splitlines() == [
        "note: pagila.sales has no such columns, they are ignored: note"
    ]


def test_columns_match_by_name_in_any_order_and_case_and_nullable_ones_may_miss(
    tmp_path: Path,
) -> None:
    text = "Country,AMOUNT,customer_id, payment_id,payment_date\nPeru,5,1,2,2021-05-10\n"
    records, _ = replayed(tmp_path, b"\xef\xbb\xbf" + text.encode())
    assert decoded(records[0]) == {
        "payment_id": 2,
        "customer_id": 1,
        "amount": Decimal("5.00"),
        "payment_date": datetime(2021, 5, 10, tzinfo=UTC),
        "city": None,
        "district": None,
        "country": "Peru",
    }


def test_invalid_rows_are_reported_by_line_and_the_others_are_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        HEADER,
        ROW,
        ROW.replace("7,42", "seven,42"),
        ROW.replace("7,42", "7,4200000000"),
        ROW.replace("3.99", "3.999"),
        ROW.replace("3.99", "100000000"),
        ROW.replace("2021-05-10", "2021-02-30"),
        '8,42,3.99,2021-05-10,"two\nlines",,Turkey',
        ROW.removesuffix("Turkey"),
        ROW + ",more",
        "",
        ROW.replace("3.99", "1_0"),
        ROW.replace("3.99", "3.990"),
    ]
    records, run = replayed(tmp_path, "\n".join(lines) + "\n")
    assert capsys.readouterr().err.splitlines() == [
        "line 3: payment_id 'seven' is not a number",
        "line 4: customer_id '4200000000' is beyond a 32-bit integer",
        "line 5: amount '3.999' has 3 decimals, 2 are kept",
        "line 6: amount '100000000' is too large for decimal(10,2)",
        (
            "line 7: payment_date '2021-02-30 13:04:06.996577+00' is not a time"
            " (write it like 2021-05-10 13:04:06.996+00)"
        ),
        "line 10: country is empty, and needs a value",
        "line 11: has 8 cells, the header 7",
        "line 13: amount '1_0' is not a number",
    ]
    assert (run.read, run.refused, len(records)) == (11, 8, 3)
    assert decoded(records[1])["city"] == "two\nlines"
    assert decoded(records[2]) == SALE


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "arrived is empty, and it is the Kafka timestamp"),
        ("soon", "arrived 'soon' is not a time"),
        ("1969-12-31", "is before 1970"),
        ("2199-01-01", "is more than an hour ahead"),
    ],
)
def test_a_row_whose_timestamp_kafka_would_refuse_is_refused_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, reason: str
) -> None:
    text = f"{HEADER},arrived\n{ROW},{written}\n{ROW},2021-05-10\n"
    records, run = replayed(tmp_path, text, timestamps="arrived")
    assert (len(records), run.refused) == (1, 1)
    errors = capsys.readouterr().err
    assert errors.startswith("line 2: ")
    assert reason in errors


ARRAY = """[
  {"payment_id": 1, "customer_id": 2, "amount": 3.99, "payment_date": 1620651846, "country": "A"},
  {"payment_id": 2, "customer_id": 2, "amount": 0.1, "payment_date": "2021-05-10",
   "city": null, "country": "B", "clerk": 3},
  {"payment_id": true, "customer_id": 2, "amount": 1, "payment_date": 1620651846, "country": "C"},
  {"payment_id": 4, "customer_id": 2, "amount": 1, "payment_date": 1620651846},
  5,
  {"payment_id": 6, "customer_id": 2, "amount": 1, "payment_date": 1620651846, "country": 7}
]
"""


def test_a_json_array_is_rows_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, run = replayed(tmp_path, ARRAY)
    assert [decoded(record)["country"] for record in records] == ["A", "B"]
    assert [decoded(record)["amount"] for record in records] == [Decimal("3.99"), Decimal("0.10")]
    assert (run.read, run.refused) == (6, 4)
    assert capsys.readouterr().err.splitlines() == [
        "note: pagila.sales has no such columns, they are ignored: clerk",
        "line 5: payment_id 'true' is not a number",
        "line 6: country is missing",
        "line 7: is not a JSON object but 5",
        "line 8: country '7' is not text",
    ]


def test_json_lines_go_on_after_a_broken_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = '{"payment_id":1,"customer_id":2,"amount":1,"payment_date":1620651846,"country":"A"}'
    records, run = replayed(tmp_path, f"{good}\n{{oops}}\n\n{good}\n")
    assert (len(records), run.refused) == (2, 1)
    assert capsys.readouterr().err.startswith("line 2: is not JSON")


def test_an_incomplete_array_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, run = replayed(tmp_path, ARRAY.splitlines()[0] + ARRAY.splitlines()[1])
    assert (len(records), run.refused) == (1, 1)
    assert "without the closing ]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("payment_id,customer_id\n1,2\n", "column amount is missing"),
        (HEADER.replace("city", "country") + "\n", "duplicate column 'country'"),
        (HEADER.encode() + b"\n" + ROW.encode() + b"\xf1\n", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(
    tmp_path: Path, text: str | bytes, reason: str
) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigurationError, match=reason):
        replay(file, "pagila.sales")


def test_a_missing_file_a_folder_and_an_unknown_stream_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        replay(tmp_path / "none.csv", "pagila.sales")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        replay(tmp_path, "pagila.sales")
    known = re.escape(f"known: {', '.join(sorted(STREAMS))}")
    with pytest.raises(ConfigurationError, match=known):
        replay(tmp_path, "pagila.rentals")


def test_a_timestamp_column_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such column"):
        replayed(tmp_path, f"{HEADER}\n{ROW}\n", timestamps="when")


def stream_with(kind: Any) -> Stream:
    x, n = {"name": "x", "type": kind}, {"name": "n", "type": "int"}
    schema = {"type": "record", "name": "T", "fields": [x, n]}
    return Stream("test.x", schema, {"type": "int"}, key_field="n")


@pytest.mark.parametrize(
    ("kind", "written", "encoded"),
    [
        ("long", "9223372036854775807", b"\xfe" + b"\xff" * 8 + b"\x01"),
        ("int", "12.0", b"\x18"),
        ("double", "0.5", b"\x00" * 6 + b"\xe0\x3f"),
        ("boolean", "Yes", b"\x01"),
        ({"type": "int", "logicalType": "date"}, "1970-01-02", b"\x02"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "1970-01-01T00:00Z", b"\x00"),
        (["null", "int"], "1", b"\x02\x02"),
        (["int", "null"], None, b"\x02"),
    ],
)
def test_each_type_is_encoded(kind: Any, written: str | None, encoded: bytes) -> None:
    stream = stream_with(kind)
    _, value = RowEncoder(stream, 1, 1).encode({"x": written, "n": 0})
    assert value == b"\x00\x00\x00\x00\x01" + encoded + b"\x00"


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("long", "9223372036854775808"),
        ("int", "1.5"),
        ("int", "٣"),
        ("double", "1e999"),
        ("double", "nan"),
        ("boolean", "maybe"),
        ("string", "\ud800"),
        ({"type": "int", "logicalType": "date"}, "10.05.2021"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_invalid(kind: Any, written: str) -> None:
    with pytest.raises(InvalidValue, match=r"^x '"):
        RowEncoder(stream_with(kind), 1, 1).encode({"x": written, "n": 0})


def test_a_type_that_rows_cannot_give_is_a_clear_error() -> None:
    with pytest.raises(ConfigurationError, match=r"field x of test\.x"):
        fields_of(stream_with({"type": "array", "items": "int"}))


MENU = """ID,Category,Item,Size,COGS,Price,Inventory,Contains Fruit,containsVeggies,\
ContainsNuts,CONTAINS-CAFFEINE,_Price,_Rank
CS08,Classic,Crème O'Clock,24 oz.,1.50,4.99,75,TRUE,FALSE,false,FALSE,9.99,54
"""
MENU_COLUMNS = {"product_id": "ID", "inventory_level": "Inventory", "propensity_to_buy": "_Rank"}


def test_columns_are_found_whatever_their_case_and_word_marks_or_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, run = replayed(
        tmp_path,
        MENU,
        timestamps="event_time",
        stream=PRODUCTS,
        columns=MENU_COLUMNS,
        constants={"event_time": "2022-08-31T08:00Z"},
    )
    assert [decoded(record, PRODUCTS) for record in records] == [
        {
            "event_time": datetime(2022, 8, 31, 8, tzinfo=UTC),
            "product_id": "CS08",
            "category": "Classic",
            "item": "Crème O'Clock",
            "size": "24 oz.",
            "cogs": Decimal("1.50"),
            "price": Decimal("4.99"),
            "inventory_level": 75,
            "contains_fruit": True,
            "contains_veggies": False,
            "contains_nuts": False,
            "contains_caffeine": False,
            "propensity_to_buy": 54,
        }
    ]
    assert records[0].key == b"\x00\x00\x00\x00\x03\x08CS08"
    assert records[0].timestamp == 1_661_932_800_000
    assert run.refused == 0
    assert capsys.readouterr().err == (
        "note: smoothies.products has no such columns, they are ignored: _Price\n"
    )


def test_a_constant_wins_over_the_file_and_an_empty_one_is_null(tmp_path: Path) -> None:
    constants = {"country": "Chile", "city": None}
    records, _ = replayed(tmp_path, f"{HEADER}\n{ROW}\n", constants=constants)
    assert decoded(records[0]) == SALE | constants


def test_one_column_may_be_two_fields_and_is_no_other_by_its_own_name(tmp_path: Path) -> None:
    columns = {"country": "city", "district": "city"}
    text = f"{HEADER}\n{ROW}\n".replace("city,district,country", "city,_a,_b")
    records, _ = replayed(tmp_path, text, columns=columns)
    wanted = {"city": None, "district": "Usak", "country": "Usak"}
    assert decoded(records[0]) == SALE | wanted


def test_json_names_can_be_given_and_matched_like_columns(tmp_path: Path) -> None:
    text = (
        '{"paymentId":7,"customer":42,"amount":3.99,"paymentDate":1620651846.996577,'
        '"city":"Usak","country":"Turkey"}'
    )
    records, _ = replayed(tmp_path, text, columns={"customer_id": "customer"})
    assert decoded(records[0]) == SALE


LINE = """[{
    "transaction_time": "2022-08-31 08:00:34.721802",
    "product_id": "SF07", "price": 5.99, "quantity": 1, "is_member": true,
    "member_discount": 0.1, "add_supplements": true, "supplement_price": 1.99,
    "total_purchase": 7.18
}]"""


def test_a_purchase_keeps_its_microseconds_its_cents_and_has_no_key_without_an_id(
    tmp_path: Path,
) -> None:
    records, _ = replayed(tmp_path, LINE, timestamps="transaction_time", stream=PURCHASES)
    assert records[0].key is None
    assert records[0].timestamp == 1_661_932_834_721
    assert decoded(records[0], PURCHASES) == {
        "transaction_time": datetime(2022, 8, 31, 8, 0, 34, 721_802, UTC),
        "transaction_id": None,
        "product_id": "SF07",
        "price": Decimal("5.99"),
        "quantity": 1,
        "is_member": True,
        "member_discount": Decimal("0.10"),
        "add_supplements": True,
        "supplement_price": Decimal("1.99"),
        "total_purchase": Decimal("7.18"),
    }


def test_an_id_that_is_there_is_the_key(tmp_path: Path) -> None:
    constants: dict[str, str | None] = {"transaction_id": "12"}
    records, _ = replayed(tmp_path, LINE, stream=PURCHASES, constants=constants)
    assert records[0].key == b"\x00\x00\x00\x00\x03\x0412"


@pytest.mark.parametrize(
    ("columns", "constants", "reason"),
    [
        ({"clerk": "city"}, {}, "--column clerk: pagila.sales has no such field"),
        ({"city": "town"}, {}, "--column city=town: the file has no such column"),
        ({}, {"clerk": "x"}, "--set clerk: pagila.sales has no such field"),
        ({}, {"amount": "much"}, "--set amount 'much' is not a number"),
        ({}, {"country": None}, "--set country is empty, and needs a value"),
        ({"city": "country"}, {}, "`--set country=VALUE`"),
    ],
)
def test_an_option_that_names_or_gives_what_cannot_be_is_refused(
    tmp_path: Path, columns: dict[str, str], constants: dict[str, str | None], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        replayed(tmp_path, f"{HEADER}\n{ROW}\n", columns=columns, constants=constants)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (["city"], "--column city: write it as FIELD=..."),
        (["=city"], "--column =city: write it as FIELD=..."),
        (["city=a", "city=b"], "--column city=b: city has a value already"),
    ],
)
def test_pairs_are_a_name_and_a_value_once(tmp_path: Path, column: list[str], reason: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(f"{HEADER}\n{ROW}\n")
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        replay(file, "pagila.sales", column=column)


REAL_DATA = os.environ.get("MILLRACE_REAL_DATA", "")


@pytest.mark.skipif(
    not (Path(REAL_DATA) / "pagila_sales_600.csv").is_file(),
    reason="MILLRACE_REAL_DATA names no folder with pagila_sales_600.csv",
)
def test_all_rows_of_a_real_file_encode(tmp_path: Path) -> None:
    text = (Path(REAL_DATA) / "pagila_sales_600.csv").read_text()
    records, run = replayed(tmp_path, text, timestamps="payment_date")
    assert (run.read, run.refused) == (600, 0)
    sales = [decoded(record) for record in records]
    lines = [line.split("|") for line in text.splitlines()[1:]]
    assert [str(sale["payment_id"]) for sale in sales] == [line[0] for line in lines]
    assert [str(sale["customer_id"]) for sale in sales] == [line[1] for line in lines]
    assert [str(sale["amount"]) for sale in sales] == [line[2] for line in lines]
    assert [sale["country"] for sale in sales] == [line[-1] for line in lines]
    for record, sale, line in zip(records, sales, lines, strict=True):
        assert f"{sale['payment_date']:%Y-%m-%d %H:%M:%S.%f}"[:-3] == line[3][:23]
        assert record.timestamp == round(sale["payment_date"].timestamp() * 1_000)
