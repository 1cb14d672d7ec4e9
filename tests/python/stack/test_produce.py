"""Events and a person's own rows through a real broker: what is read is what was made.

Fails when what is read from a topic is not what `sandbox produce` or `replay` reports.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from fastavro import parse_schema, schemaless_reader

from sandbox.events.schema_ids import schema_ids
from sandbox.services import stack as services
from sandbox.settings import PROJECT
from sandbox.streams import STREAMS, Stream
from sandbox.streams.faults import FAULTS
from sandbox.streams.pagila.sales import sales
from sandbox.streams.smoothies.shop import INVENTORIES, PRODUCTS, PURCHASES, smoothies
from sandbox.streams.timeline import Plan, Record, timeline
from sandbox.streams.times import instant_micros
from tests.python.conftest import Stack, make_home, own_stack, program_environment

STREAM = STREAMS["pagila.sales"]
SMOOTHIES = (PRODUCTS, PURCHASES, INVENTORIES)
REAL_DATA = os.environ.get("MILLRACE_REAL_DATA", "")
REAL_MENU, REAL_LINES = "smoothie_products.csv", "smoothie_purchases_290.json"
SANDBOX = str(Path(sys.executable).parent / "sandbox")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A sandbox for these tests alone: they fill its topic with broken records."""
    with own_stack(tmp_path_factory.mktemp("own home")) as found:
        yield found


def ends(stack: Stack, stream: Stream = STREAM) -> dict[int, int]:
    """The end offset of each partition."""
    consumer = Consumer({"bootstrap.servers": stack.home.bootstrap_servers, "group.id": "t"})
    found = {
        number: consumer.get_watermark_offsets(TopicPartition(stream.topic, number))[1]
        for number in range(stream.partitions)
    }
    consumer.close()
    return found


def read(stack: Stack, begin: dict[int, int], stream: Stream = STREAM) -> dict[int, list[Message]]:
    """All records from the given offsets to the end, by partition, in order."""
    end = ends(stack, stream)
    consumer = Consumer({"bootstrap.servers": stack.home.bootstrap_servers, "group.id": "t"})
    consumer.assign(
        [TopicPartition(stream.topic, number, offset) for number, offset in begin.items()]
    )
    found: dict[int, list[Message]] = {number: [] for number in begin}
    missing = sum(end.values()) - sum(begin.values())
    deadline = time.monotonic() + 30
    while missing > 0 and time.monotonic() < deadline:
        for message in consumer.consume(1_000, timeout=0.5):
            assert message.error() is None
            found[message.partition() or 0].append(message)
            missing -= 1
    consumer.close()
    assert missing == 0
    return found


def check(found: dict[int, list[Message]], wanted: list[Record]) -> None:
    """Fail unless a topic's partitions hold just these records, in order, by their keys."""
    home_of: dict[bytes, int] = {}
    for number, messages in found.items():
        for message in messages:
            key = message.key()
            assert isinstance(key, bytes)
            assert home_of.setdefault(key, number) == number
    for number, messages in found.items():
        assert [(m.key(), m.value(), m.timestamp()[1]) for m in messages] == [
            (record.key, record.value, record.timestamp)
            for record in wanted
            if record.key is not None and home_of[record.key] == number
        ]


def test_what_is_read_is_what_the_plan_says(stack: Stack) -> None:
    before = ends(stack)
    command = (
        "sandbox produce pagila --count 5000 --seed 9 --start 2026-01-05T09:00Z --span 3h"
        " --late 0.05 --bad 0.02 --json"
    )
    reported = json.loads(stack.run(*command.split()).stdout)
    by_partition = read(stack, before)

    start = instant_micros("2026-01-05T09:00Z") // 1_000
    first_id = sum(before.values()) + 1
    plan = Plan(9, 5_000, start, 10_800_000 / 5_000, 0.05, 0.02, first_id)
    wanted = list(timeline(plan, sales(*schema_ids(stack.home, STREAM))))
    check(by_partition, wanted)
    assert all(len(messages) > 500 for messages in by_partition.values())

    kinds = Counter(record.kind for record in wanted)
    assert reported["bad_by_kind"] == {name: kinds[name] for name in FAULTS}
    assert (reported["records"], reported["delivered"], reported["bad"]) == (5_000, 5_000, 100)
    assert (reported["late"], reported["sales"], reported["first_id"]) == (250, 4_900, first_id)


def test_a_second_run_does_not_repeat_payment_ids_and_says_so_in_one_line(stack: Stack) -> None:
    before = sum(ends(stack).values())
    for _ in range(2):
        done = stack.run("sandbox", "produce", "pagila", "--count", "10")
        line = re.fullmatch(r"10 records to .* payment_id from (\d+), seed 1\n", done.stdout)
        assert line is not None
        assert int(line[1]) == before + 1
        assert done.stderr == ""
        before += 10


def test_smoothies_fill_three_topics_with_what_the_plan_says(stack: Stack) -> None:
    before = {stream.topic: ends(stack, stream) for stream in SMOOTHIES}
    command = (
        "sandbox produce smoothies --count 3000 --seed 9 --start 2026-01-05T09:00Z"
        " --span 3h --late 0.05 --bad 0.02 --wrong 0.01 --json"
    )
    reported = json.loads(stack.run(*command.split()).stdout)

    start = instant_micros("2026-01-05T09:00Z") // 1_000
    first_id = sum(before[PURCHASES.topic].values()) + 1
    plan = Plan(9, 3_000, start, 10_800_000 / 3_000, 0.05, 0.02, first_id, 0.01)
    ids = {stream.name: schema_ids(stack.home, stream) for stream in SMOOTHIES}
    wanted = list(smoothies(plan, ids))
    for stream in SMOOTHIES:
        beside = "" if stream == PURCHASES else stream.topic
        own = [record for record in wanted if record.beside == beside]
        check(read(stack, before[stream.topic], stream), own)

    kinds = Counter(record.kind for record in wanted if not record.beside)
    assert reported["bad_by_kind"] == {name: kinds[name] for name in FAULTS}
    assert (reported["events"], reported["purchases"]) == (3_000, 2_940)
    assert (reported["late"], reported["wrong"], reported["bad"]) == (150, 30, 60)
    assert reported["beside"] == {
        stream.topic: sum(record.beside == stream.topic for record in wanted)
        for stream in (PRODUCTS, INVENTORIES)
    }
    assert reported["records"] == reported["delivered"] == len(wanted)
    assert reported["first_id"] == first_id


def test_a_second_run_has_transactions_of_its_own(stack: Stack) -> None:
    keys: list[set[bytes]] = []
    for _ in range(2):
        before = ends(stack, PURCHASES)
        done = stack.run("sandbox", "produce", "smoothies", "--count", "200")
        first = sum(before.values()) + 1
        assert done.stderr == ""
        assert f"200 on time, 0 late, 0 wrong, 0 bad, 27 to {PRODUCTS.topic}, " in (done.stdout)
        assert done.stdout.endswith(f"; transaction number from {first}, seed 1\n")
        messages = [m for some in read(stack, before, PURCHASES).values() for m in some]
        keys.append({key for m in messages if isinstance(key := m.key(), bytes)})
    assert len(keys[0]) == len(keys[1])
    assert keys[0].isdisjoint(keys[1])


def test_the_rate_is_that_of_the_purchase_lines(stack: Stack) -> None:
    command = "sandbox produce smoothies --count 60 --rate 40/s --json"
    reported = json.loads(stack.run(*command.split()).stdout)
    assert (reported["events"], reported["beside"][PRODUCTS.topic]) == (60, 27)
    # The last of 60 is due 59/40 s after the first.
    assert reported["seconds"] >= 1.4


@pytest.mark.skipif(
    not all((Path(REAL_DATA) / name).is_file() for name in (REAL_MENU, REAL_LINES)),
    reason=f"MILLRACE_REAL_DATA names no folder with {REAL_MENU} and {REAL_LINES}",
)
def test_real_purchases_and_products_arrive_as_they_are(stack: Stack) -> None:
    menu, lines = Path(REAL_DATA) / REAL_MENU, Path(REAL_DATA) / REAL_LINES
    before = {stream.topic: ends(stack, stream) for stream in SMOOTHIES}
    # fmt: off
    stack.run(
        "sandbox", "replay", str(menu), "--stream", PRODUCTS.name,
        "--column", "product_id=ID", "--column", "inventory_level=Inventory",
        "--column", "propensity_to_buy=_RangeWeight",
        "--set", "event_time=2022-08-31", "--timestamps", "event_time",
    )
    stack.run(
        "sandbox", "replay", str(lines), "--stream", PURCHASES.name,
        "--timestamps", "transaction_time",
    )
    # fmt: on
    products = arrived(stack, before, PRODUCTS)
    with menu.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["ID"]: row for row in csv.DictReader(file)}
    assert {one["product_id"] for one in products} == set(rows)
    for one in products:
        row = rows[one["product_id"]]
        assert one["event_time"] == datetime(2022, 8, 31, tzinfo=UTC)
        assert (one["item"], str(one["cogs"])) == (row["Item"], row["COGS"])
        assert (str(one["price"]), one["category"]) == (row["Price"], row["Category"])
        assert one["inventory_level"] == int(row["Inventory"])
        assert one["propensity_to_buy"] == int(row["_RangeWeight"])
        for what in ("Fruit", "Veggies", "Nuts", "Caffeine"):
            found = one[f"contains_{what.lower()}"]
            assert found == (row[f"Contains{what}"] == "TRUE")

    written = json.loads(lines.read_text(), parse_float=Decimal)
    for line in written:
        moment = datetime.fromisoformat(line["transaction_time"])
        line["transaction_time"] = moment.replace(tzinfo=UTC)
        line["transaction_id"] = None
    found = arrived(stack, before, PURCHASES)
    by_time = itemgetter("transaction_time", "product_id")
    assert sorted(found, key=by_time) == sorted(written, key=by_time)
    messages = read(stack, before[PURCHASES.topic], PURCHASES)
    assert all(m.key() is None for some in messages.values() for m in some)


def arrived(
    stack: Stack, before: dict[str, dict[int, int]], stream: Stream
) -> list[dict[str, Any]]:
    """The decoded values of what came since."""
    schema = parse_schema(stream.value_schema)
    found = []
    for messages in read(stack, before[stream.topic], stream).values():
        for message in messages:
            value = message.value()
            assert isinstance(value, bytes)
            record = schemaless_reader(BytesIO(value[5:]), schema, None)
            assert isinstance(record, dict)
            found.append(record)
    return found


def test_a_paced_stream_runs_until_ctrl_c_and_shows_what_it_sent(stack: Stack) -> None:
    before = ends(stack)
    producer = subprocess.Popen(
        [SANDBOX, "produce", "pagila", "--rate", "40/s", "--json"],
        cwd=PROJECT,
        env=stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while sum(ends(stack).values()) - sum(before.values()) < 60:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    producer.send_signal(signal.SIGINT)
    out, err = producer.communicate(timeout=30)
    assert (producer.returncode, err) == (0, "")
    reported = json.loads(out)
    arrived = sum(ends(stack).values()) - sum(before.values())
    assert reported["delivered"] == reported["records"] == arrived
    assert 30 <= reported["records_per_second"] <= 45


def test_own_rows_arrive_with_their_times_and_the_rows_that_do_not_fit_are_named(
    stack: Stack, tmp_path: Path
) -> None:
    before = ends(stack)
    file = tmp_path / "own sales.csv"
    file.write_text(
        "payment_id;customer_id;amount;payment_date;city;country\n"
        "900001;7;4.99;2021-05-10 13:04:06.996577+00;Lima;Peru\n"
        "900002;7;4.99;never;Lima;Peru\n"
        "900003;7;4.99;2021-05-10 13:05:06.996577 +00:00;;Peru\n"
    )
    done = stack.run(
        *("sandbox", "replay", str(file), "--stream", "pagila.sales"),
        *("--timestamps", "payment_date"),
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("line 3: payment_date 'never' is not a time")
    assert done.stdout.startswith("2 of 3 rows to pagila.sales.avro")
    arrived = [m for messages in read(stack, before).values() for m in messages]
    assert [m.timestamp()[1] for m in arrived] == [1_620_651_846_996, 1_620_651_906_996]
    key_id, _ = schema_ids(stack.home, STREAM)
    assert {m.key() for m in arrived} == {b"\x00" + key_id.to_bytes(4, "big") + bytes([14])}


def test_schema_ids_are_those_of_the_registry_and_asking_registers_nothing(stack: Stack) -> None:
    registry = SchemaRegistryClient({"url": stack.home.registry_url})
    subjects = (STREAM.key_subject, STREAM.value_subject)

    found = schema_ids(stack.home, STREAM)

    versions = [registry.get_versions(subject) for subject in subjects]
    assert [len(some) for some in versions] == [1, 1]
    latest = [registry.get_latest_version(subject).schema_id for subject in subjects]
    assert list(found) == latest


@pytest.mark.nightly
def test_a_missing_topic_is_one_line_with_the_fix(tmp_path: Path) -> None:
    # On a broker of its own: whatever runs next finds the topic as it was.
    home = make_home(tmp_path / "own")
    own = Stack(home, program_environment(home))
    try:
        services.up(home, ["kafka"])
        admin = AdminClient({"bootstrap.servers": home.bootstrap_servers})
        gone = admin.delete_topics([STREAM.topic], operation_timeout=20)
        gone[STREAM.topic].result()

        done = own.run("sandbox", "produce", "pagila", check=False)

        assert done.returncode == 2
        assert f"topic {STREAM.topic} does not exist" in done.stderr
        assert "`sandbox up` creates it" in done.stderr
        assert done.stderr.count("\n") == 1
        assert STREAM.topic not in admin.list_topics(timeout=10).topics
    finally:
        services.down(home)


@pytest.mark.parametrize("command", ["produce pagila", "produce smoothies", "replay"])
def test_help_teaches_by_example(stack: Stack, command: str) -> None:
    reported = stack.run("sandbox", *command.split(), "--help").stdout
    assert reported.count(f"    sandbox {command} ") >= 3
