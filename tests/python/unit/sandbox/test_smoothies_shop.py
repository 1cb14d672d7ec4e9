"""The smoothie shops: rules one by one, totals exact, stock explained by the purchases."""

from __future__ import annotations

import csv
import hashlib
import os
from collections import Counter
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from sandbox.streams import STREAMS, Stream
from sandbox.streams.faults import FAULTS
from sandbox.streams.smoothies.catalogue import catalogue, choices
from sandbox.streams.smoothies.purchases import LARGEST_TRANSACTION, total_cents, transaction_id
from sandbox.streams.smoothies.shop import (
    INVENTORIES,
    LOWEST_LEVEL,
    PRODUCTS,
    PURCHASES,
    RESTOCKED,
    smoothies,
)
from sandbox.streams.timeline import LATE, LATEST_MILLIS, ON_TIME, WRONG, Plan, Record

IDS = {PRODUCTS.name: (3, 4), PURCHASES.name: (3, 5), INVENTORIES.name: (3, 6)}
SCHEMAS = {
    stream.topic: parse_schema(stream.value_schema)
    for stream in STREAMS.values()
    if stream.name in IDS
}
START = 1_767_600_000_000  # 2026-01-05T08:00:00Z
HOUR = 3_600_000
REAL_DATA = os.environ.get("MILLRACE_REAL_DATA", "")


@cache
def made(
    count: int, late: float = 0.0, bad: float = 0.0, wrong: float = 0.0, seed: int = 1
) -> tuple[Record, ...]:
    plan = Plan(seed, count, START, 2 * HOUR / count, late, bad, 101, wrong)
    return tuple(smoothies(plan, IDS))


def lines_of(records: tuple[Record, ...]) -> list[Record]:
    return [record for record in records if not record.beside]


def beside(records: tuple[Record, ...], stream: Stream) -> list[dict[str, Any]]:
    return [decoded(record) for record in records if record.beside == stream.topic]


def decoded(record: Record) -> dict[str, Any]:
    """What a careful reader makes of a value; it fails when that is broken."""
    topic = record.beside or PURCHASES.topic
    (stream,) = (one for one in STREAMS.values() if one.topic == topic)
    if len(record.value) < 5 or record.value[0] != 0:
        raise ValueError("no framing")
    if int.from_bytes(record.value[1:5], "big") != IDS[stream.name][1]:
        raise ValueError("unknown schema id")
    body = BytesIO(record.value[5:])
    value = schemaless_reader(body, SCHEMAS[topic], None)
    if body.tell() != len(record.value) - 5:
        raise ValueError("bytes left over")
    assert isinstance(value, dict)
    return value


def micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def true_total(line: dict[str, Any]) -> Decimal:
    """By decimal arithmetic on what the record says, not by the generator's cents."""
    unit = line["price"] + line["supplement_price"]
    total = line["quantity"] * unit * (1 - line["member_discount"])
    return Decimal(total).quantize(Decimal("0.01"), ROUND_HALF_UP)


def share(times: int, whole: int, expected: float) -> bool:
    """Whether a share is as expected, within four standard deviations of chance."""
    deviation = (expected * (1 - expected) / whole) ** 0.5
    return bool(abs(times / whole - expected) <= 4 * deviation)


def transactions(count: int) -> list[list[dict[str, Any]]]:
    lines = [decoded(record) for record in lines_of(made(count))]
    return [list(own) for _, own in groupby(lines, lambda line: line["transaction_id"])]


def test_the_same_plan_gives_the_same_records_and_another_seed_others() -> None:
    plan = Plan(1, 3_000, START, 2.5, 0.05, 0.02, 101, 0.03)
    assert list(smoothies(plan, IDS)) == list(smoothies(plan, IDS))
    assert made(500) != made(500, seed=2)


def test_the_bytes_stay_those_that_were_published() -> None:
    """A change of them breaks whoever compares runs: change this only on purpose."""
    digest = hashlib.sha256()
    for key, value, timestamp, kind, topic in made(3_000, 0.05, 0.02, 0.03):
        assert key is not None
        metadata = (str(timestamp), kind, topic)
        digest.update(b"|".join((key, value, *(word.encode() for word in metadata))))
    assert digest.hexdigest()[:16] == "1c42b4c7a378e0cd"


def test_all_products_come_first_as_of_the_start_of_the_run() -> None:
    records = made(100)
    assert {record.beside for record in records[:27]} == {PRODUCTS.topic}
    products = beside(records, PRODUCTS)
    assert len(products) == 27
    for product, known in zip(products, catalogue(), strict=True):
        assert micros(product.pop("event_time")) == START * 1_000
        assert product == vars(known)
    assert {record.timestamp for record in records[:27]} == {START + 50}


def test_the_catalogue_has_four_categories_and_names_that_are_hard_to_store() -> None:
    ids = [product.product_id for product in catalogue()]
    sizes = Counter(product_id[:2] for product_id in ids)
    assert sizes == {"CS": 11, "SF": 7, "SC": 5, "IS": 4}
    assert len({(one.product_id[:2], one.category) for one in catalogue()}) == 4
    assert len({product.item for product in catalogue()}) == 27
    assert any("'" in product.item for product in catalogue())
    assert any(not product.item.isascii() for product in catalogue())
    by_category = {one.product_id[:2]: (one.cogs, one.price) for one in catalogue()}
    assert by_category == {
        "CS": (Decimal("1.50"), Decimal("4.99")),
        "SF": (Decimal("2.10"), Decimal("5.99")),
        "SC": (Decimal("2.70"), Decimal("5.99")),
        "IS": (Decimal("2.20"), Decimal("5.49")),
    }


@pytest.mark.skipif(
    not (Path(REAL_DATA) / "smoothie_products.csv").is_file(),
    reason="MILLRACE_REAL_DATA names no folder with smoothie_products.csv",
)
def test_the_catalogue_has_the_figures_of_a_real_one_and_other_names() -> None:
    with (Path(REAL_DATA) / "smoothie_products.csv").open(encoding="utf-8-sig") as file:
        real = list(csv.DictReader(file))
    for product, row in zip(catalogue(), real, strict=True):
        flags = [row[f"Contains{what}"] == "TRUE" for what in ("Fruit", "Veggies")]
        flags += [row[f"Contains{what}"] == "TRUE" for what in ("Nuts", "Caffeine")]
        assert list(vars(product).values()) == [
            *(row["ID"], row["Category"], product.item, row["Size"]),
            *(Decimal(row["COGS"]), Decimal(row["Price"]), int(row["Inventory"])),
            *(*flags, int(row["_RangeWeight"])),
        ]
        assert product.item != row["Item"]


def test_a_draw_chooses_the_nearest_product_and_of_two_the_lower() -> None:
    chosen = [catalogue()[position] for position in choices()]
    assert len(chosen) == 198
    by_number = dict(enumerate((one.product_id for one in chosen), start=3))
    # CS01 is at 3, CS02 at 6, CS03 at 15; SF01 at 82, SF02 at 84: 83 is between them.
    assert [by_number[n] for n in (3, 4, 5, 10, 11)] == [*("CS01", "CS01", "CS02", "CS02", "CS03")]
    assert (by_number[83], by_number[200]) == ("SF01", "IS04")


def test_products_are_bought_as_often_as_the_scale_says() -> None:
    lines = [decoded(record) for record in lines_of(made(40_000))]
    expected = Counter(catalogue()[position].product_id for position in choices())
    bought = Counter(line["product_id"] for line in lines)
    assert set(bought) == set(expected)
    for product_id, places in expected.items():
        assert share(bought[product_id], len(lines), places / 198), product_id


def test_transactions_have_one_to_three_lines_in_their_shares() -> None:
    sizes = Counter(len(own) for own in transactions(40_000))
    assert set(sizes) == {1, 2, 3}
    for lines, expected in ((1, 0.65), (2, 0.25), (3, 0.10)):
        assert share(sizes[lines], sizes.total(), expected), lines


def test_lines_of_a_transaction_share_key_time_and_membership() -> None:
    for own in transactions(5_000):
        assert len({(line["transaction_time"], line["is_member"]) for line in own}) == 1
    for record in lines_of(made(5_000)):
        assert record.key is not None
        assert record.key[:5] == b"\x00\x00\x00\x00\x03"
        key = schemaless_reader(BytesIO(record.key[5:]), {"type": "string"}, None)
        assert key == decoded(record)["transaction_id"]


def test_a_product_may_stand_twice_in_one_transaction() -> None:
    assert any(len({line["product_id"] for line in own}) < len(own) for own in transactions(5_000))


def test_quantities_members_and_supplements_have_their_shares() -> None:
    own = transactions(40_000)
    lines = [line for some in own for line in some]
    quantities = Counter(line["quantity"] for line in lines)
    for quantity, expected in ((1, 24 / 30), (2, 5 / 30), (3, 1 / 30)):
        assert share(quantities[quantity], len(lines), expected), quantity
    assert share(sum(some[0]["is_member"] for some in own), len(own), 0.3)
    for kind, expected in (("CS", 0.2), ("IS", 0.2), ("SF", 0.5), ("SC", 0.5)):
        mine = [line for line in lines if line["product_id"].startswith(kind)]
        assert share(sum(x["add_supplements"] for x in mine), len(mine), expected), kind


def test_prices_discounts_and_supplements_follow_from_product_member_and_choice() -> None:
    prices = {product.product_id: product.price for product in catalogue()}
    for record in lines_of(made(5_000)):
        line = decoded(record)
        assert line["price"] == prices[line["product_id"]]
        assert line["member_discount"] == Decimal("0.10" if line["is_member"] else 0)
        cost = Decimal("1.99" if line["add_supplements"] else 0)
        assert line["supplement_price"] == cost


def test_totals_follow_exactly_from_their_parts() -> None:
    totals = {
        line["total_purchase"]: true_total(line)
        for line in map(decoded, lines_of(made(10_000, late=0.1)))
    }
    assert len(totals) > 20
    assert all(written == true for written, true in totals.items())


@pytest.mark.parametrize(
    ("price", "quantity", "member", "extra", "total"),
    [
        (599, 1, False, True, 798),
        (599, 1, True, False, 539),
        (499, 3, True, True, 1_885),
        # 13.455, 0.045: half a cent goes up, as no product's price needs it today.
        (299, 5, True, False, 1_346),
        (5, 1, True, False, 5),
    ],
)
def test_half_a_cent_goes_up(
    price: int, quantity: int, member: bool, extra: bool, total: int
) -> None:
    found = total_cents(price, quantity, is_member=member, add_supplements=extra)
    assert found == total


@pytest.mark.parametrize(
    ("count", "late", "bad", "wrong"),
    [
        (1, 0, 0, 1),
        (7, 0.3, 0.3, 0.4),
        (999, 0.05, 0.01, 0.01),
        (2_345, 0.333, 0.077, 0.5),
        (3, 0.5, 0.5, 0),
    ],
)
def test_shares_of_lines_are_exact(count: int, late: float, bad: float, wrong: float) -> None:
    kinds = Counter(record.kind for record in lines_of(made(count, late, bad, wrong)))
    broken = sum(kinds[name] for name in FAULTS)
    assert kinds.total() == count
    assert broken == round(count * bad)
    assert kinds[LATE] == min(round(count * late), count - broken)
    assert kinds[WRONG] == min(round(count * wrong), count - broken - kinds[LATE])


def test_wrong_lines_decode_and_their_total_is_always_wrong() -> None:
    records = lines_of(made(5_000, 0.05, 0.05, 0.4))
    wrong = [decoded(record) for record in records if record.kind == WRONG]
    assert len(wrong) == 2_000
    off = [line["total_purchase"] - true_total(line) for line in wrong]
    assert all(off)
    assert min(off) < 0 < max(off)
    assert min(line["total_purchase"] for line in wrong) > 0
    right = [decoded(r) for r in records if r.kind in (ON_TIME, LATE)]
    assert all(line["total_purchase"] == true_total(line) for line in right)


@pytest.mark.parametrize("kind", list(FAULTS))
def test_no_broken_line_decodes(kind: str) -> None:
    broken = [record for record in made(6_000, bad=0.5) if record.kind == kind]
    assert len(broken) == 500
    for record in broken:
        with pytest.raises((ValueError, EOFError, IndexError)):
            decoded(record)


def test_times_keep_microseconds_and_run_over_the_span_in_order() -> None:
    times = [micros(own[0]["transaction_time"]) for own in transactions(5_000)]
    assert times == sorted(times)
    assert START * 1_000 <= times[0] < (START + HOUR // 100) * 1_000
    assert (START + 2 * HOUR - HOUR // 100) * 1_000 < times[-1] < (START + 2 * HOUR) * 1_000
    assert len({time % 1_000 for time in times}) > 900


def test_late_lines_arrive_in_their_place_and_nothing_else_is_late() -> None:
    newest = START
    delays = Counter[str]()
    for record in made(5_000, late=0.1):
        value = decoded(record)
        happened = micros(value.get("transaction_time") or value["event_time"]) // 1_000
        delay = record.timestamp - happened
        if record.kind == LATE:
            assert record.timestamp >= newest
            assert 60_000 <= delay <= LATEST_MILLIS
        else:
            assert 50 <= delay <= 2_000
        delays[record.kind] += 1
        newest = max(newest, happened)
    assert delays[LATE] == 500


def test_stock_is_what_purchases_and_restockings_make_it() -> None:
    levels = {one.product_id: one.inventory_level for one in catalogue()}
    restocked = 0
    last: dict[str, Any] = {}
    due = ""
    for record in made(20_000, wrong=0.1):
        value = decoded(record)
        if record.beside == PRODUCTS.topic:
            continue
        product_id = value["product_id"]
        if not record.beside:
            # Whatever had to be restocked was, before the next line.
            assert due == ""
            levels[product_id] -= value["quantity"]
            due = product_id if levels[product_id] <= LOWEST_LEVEL else ""
            last = value
            continue
        assert product_id == due == last["product_id"]
        assert value["event_time"] == last["transaction_time"]
        assert value["existing_level"] == levels[product_id]
        assert value["stock_quantity"] == RESTOCKED == 15
        levels[product_id] += RESTOCKED
        assert value["new_level"] == levels[product_id]
        restocked += 1
        due = ""
    assert restocked > 1_000
    assert min(levels.values()) > LOWEST_LEVEL == 10


def test_late_lines_were_sold_when_they_say_not_when_they_arrive() -> None:
    records = made(20_000, late=0.2)
    sales = [decoded(record) for record in lines_of(records)]
    refills = beside(records, INVENTORIES)
    for product in catalogue():
        mine = [x for x in sales if x["product_id"] == product.product_id]
        own = [x for x in refills if x["product_id"] == product.product_id]
        assert own
        for earlier, refill in enumerate(own):
            moment, level = refill["event_time"], product.inventory_level
            level += RESTOCKED * earlier
            level -= sum(x["quantity"] for x in mine if x["transaction_time"] < moment)
            # One or two lines of the transaction that called for it.
            same = [x["quantity"] for x in mine if x["transaction_time"] == moment]
            assert level - sum(same) <= refill["existing_level"] < level


def test_transaction_ids_are_numbers_of_their_own_whatever_the_seed() -> None:
    ids = [transaction_id(number) for number in range(1, 50_001)]
    ids += [transaction_id(LARGEST_TRANSACTION - number) for number in range(1_000)]
    assert len(set(ids)) == 51_000
    assert all(one.isdecimal() and len(one) <= 19 for one in ids)
    assert 0 < min(map(int, ids)) < max(map(int, ids)) <= LARGEST_TRANSACTION
    first = {decoded(record)["transaction_id"] for record in lines_of(made(500))}
    other = {decoded(r)["transaction_id"] for r in lines_of(made(500, seed=2))}
    assert {transaction_id(101), transaction_id(102)} <= first & other


def test_a_stream_without_end_keeps_its_shares() -> None:
    endless = smoothies(Plan(1, None, START, 1_000.0, 0.1, 0.05, 1, 0.05), IDS)
    kinds = Counter[str]()
    while kinds.total() < 50_000:
        record = next(endless)
        if not record.beside:
            kinds[record.kind] += 1
    assert abs(sum(kinds[name] for name in FAULTS) - 2_500) <= 100
    assert abs(kinds[WRONG] - 2_500) <= 100
    assert 4_700 <= kinds[LATE] <= 5_000
