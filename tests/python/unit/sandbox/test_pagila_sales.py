"""The sale events: repeatable, in exact shares, late within bounds, broken for certain."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from sandbox.streams import STREAMS
from sandbox.streams.faults import FAULTS, UNKNOWN_SCHEMA_ID
from sandbox.streams.pagila.sales import CUSTOMERS, PRICES, customers, sales
from sandbox.streams.timeline import LATE, LATEST_MILLIS, ON_TIME, Plan, Record, timeline

STREAM = STREAMS["pagila.sales"]
SCHEMA = parse_schema(STREAM.value_schema)
KEY_ID, VALUE_ID = 3, 4
START = 1_767_600_000_000  # 2026-01-05T08:00:00Z
HOUR = 3_600_000


def plan(count: int, late: float = 0.0, bad: float = 0.0, seed: int = 1) -> Plan:
    return Plan(seed, count, START, 2 * HOUR / count, late, bad, first_number=101)


def made(wanted: Plan) -> list[Record]:
    return list(timeline(wanted, sales(KEY_ID, VALUE_ID)))


def decoded(value: bytes) -> dict[str, Any]:
    """What a careful reader makes of a value; it fails when that is broken."""
    if len(value) < 5 or value[0] != 0:
        raise ValueError("no framing")
    if int.from_bytes(value[1:5], "big") != VALUE_ID:
        raise ValueError("unknown schema id")
    body = BytesIO(value[5:])
    record = schemaless_reader(body, SCHEMA, None)
    if body.tell() != len(value) - 5:
        raise ValueError("bytes left over")
    assert isinstance(record, dict)
    return record


def paid_millis(record: dict[str, Any]) -> int:
    moment = record["payment_date"]
    assert isinstance(moment, datetime)
    return round(moment.timestamp() * 1_000)


def test_the_same_plan_gives_the_same_bytes_keys_timestamps_and_order() -> None:
    assert made(plan(3_000, 0.05, 0.02)) == made(plan(3_000, 0.05, 0.02))


def test_the_bytes_stay_those_that_were_published() -> None:
    """A change of them breaks whoever compares runs: change this only on purpose."""
    digest = hashlib.sha256()
    for key, value, timestamp, kind, _ in made(plan(3_000, 0.05, 0.02)):
        assert key is not None
        digest.update(b"|".join((key, value, str(timestamp).encode(), kind.encode())))
    assert digest.hexdigest()[:16] == "7fa44f9791459f2d"


def test_another_seed_gives_other_events() -> None:
    first, second = made(plan(100)), made(plan(100, seed=2))
    assert [record.value for record in first] != [record.value for record in second]


def test_values_and_keys_decode_to_the_contract() -> None:
    ids = []
    homes = {who.customer_id: who for who in customers()}
    for record in made(plan(2_000)):
        sale = decoded(record.value)
        ids.append(sale["payment_id"])
        who = homes[sale["customer_id"]]
        assert (who.country, who.city, who.district) == (
            sale["country"],
            sale["city"],
            sale["district"],
        )
        assert record.key is not None
        key = BytesIO(record.key[5:])
        assert record.key[:5] == b"\x00\x00\x00\x00\x03"
        assert schemaless_reader(key, STREAM.key_schema, None) == sale["customer_id"]
        assert key.read() == b""
    assert ids == list(range(101, 2_101))


def test_event_times_run_over_the_span_in_order() -> None:
    times = [paid_millis(decoded(record.value)) for record in made(plan(2_000))]
    assert times == sorted(times)
    assert START <= times[0] < START + HOUR // 100
    assert START + 2 * HOUR - HOUR // 100 < times[-1] < START + 2 * HOUR


def test_amounts_are_prices_of_the_shops() -> None:
    amounts = {decoded(record.value)["amount"] for record in made(plan(3_000))}
    assert amounts == {Decimal(cents).scaleb(-2) for cents in PRICES}
    assert min(amounts) == Decimal("2.99")


@pytest.mark.parametrize(
    ("count", "late", "bad"),
    [(1, 0, 1), (1, 1, 0), (7, 0.5, 0.5), (999, 0.05, 0.01), (2_345, 0.333, 0.077), (3, 0.5, 0.5)],
)
def test_shares_are_exact(count: int, late: float, bad: float) -> None:
    kinds = Counter(record.kind for record in made(plan(count, late, bad)))
    broken = sum(kinds[name] for name in FAULTS)
    assert kinds.total() == count
    assert broken == round(count * bad)
    assert kinds[LATE] == min(round(count * late), count - broken)


def test_faults_take_turns() -> None:
    kinds = Counter(record.kind for record in made(plan(3_000, bad=0.1)))
    assert {kinds[name] for name in FAULTS} == {50}


def test_a_late_record_comes_at_most_thirty_minutes_after_its_event_and_in_its_place() -> None:
    arrived = made(plan(5_000, late=0.1))
    delays = {kind: list[int]() for kind in (ON_TIME, LATE)}
    newest = 0
    overtaken = 0
    for record in arrived:
        paid = paid_millis(decoded(record.value))
        delays[record.kind].append(record.timestamp - paid)
        if record.kind == LATE:
            overtaken += paid < newest
            # All that happened before it arrived, bar the small delay, is already there.
            assert record.timestamp >= newest
        newest = max(newest, paid)
    assert min(delays[LATE]) >= 60_000
    assert 28 * 60_000 < max(delays[LATE]) <= LATEST_MILLIS
    assert min(delays[ON_TIME]) >= 50
    assert max(delays[ON_TIME]) <= 2_000
    assert overtaken == len(delays[LATE])


def test_payment_ids_are_unique_and_broken_records_use_none() -> None:
    good = [r for r in made(plan(2_000, 0.1, 0.1)) if r.kind not in FAULTS]
    ids = sorted(decoded(record.value)["payment_id"] for record in good)
    assert ids == list(range(101, 101 + 1_800))


@pytest.mark.parametrize("kind", list(FAULTS))
def test_no_broken_record_decodes(kind: str) -> None:
    broken = [r for r in made(plan(6_000, bad=0.5)) if r.kind == kind]
    assert len(broken) == 500
    for record in broken:
        with pytest.raises((ValueError, EOFError, IndexError)):
            decoded(record.value)


def faulty(kind: str) -> Iterator[bytes]:
    return (r.value for r in made(plan(3_000, bad=0.2)) if r.kind == kind)


def test_each_fault_breaks_what_its_name_says() -> None:
    right = b"\x00\x00\x00\x00\x04"
    assert all(value.startswith(right) for value in faulty("truncated"))
    assert all(value.startswith(right) for value in faulty("garbage"))
    for value in faulty("unknown_schema"):
        assert int.from_bytes(value[1:5], "big") == UNKNOWN_SCHEMA_ID
        assert decoded(right + value[5:])["payment_id"] == 0
    assert {len(value) for value in faulty("too_short")} == {1, 2, 3, 4}
    for value in faulty("left_over"):
        body = BytesIO(value[5:])
        schemaless_reader(body, SCHEMA, None)
        assert 1 <= len(value) - 5 - body.tell() <= 8
    assert all(value[0] != 0 for value in faulty("no_magic"))


def test_a_stream_without_end_keeps_its_shares() -> None:
    endless = replace(plan(1, 0.1, 0.05), count=None, step=20.0)
    records = timeline(endless, sales(KEY_ID, VALUE_ID))
    kinds = Counter(next(records).kind for _ in range(200_000))
    assert abs(sum(kinds[name] for name in FAULTS) - 10_000) <= 500
    assert 10_000 < kinds[LATE] < 20_000


def test_customers_live_where_the_weights_say() -> None:
    per_country = Counter(who.country for who in customers())
    assert abs(per_country.total() - CUSTOMERS) < 50
    assert 90 <= len(per_country) <= 120
    assert per_country.most_common(3) == [("India", 357), ("China", 333), ("United States", 256)]
    assert min(per_country.values()) >= 1
    assert {"Untied States", "Brasil", "Yugoslavia", "Atlantis"} <= set(per_country)
    assert [who.customer_id for who in customers()] == list(range(1, per_country.total() + 1))


def test_some_places_have_no_city_or_no_district() -> None:
    assert any(who.city is None for who in customers())
    assert any(who.district is None and who.city for who in customers())
