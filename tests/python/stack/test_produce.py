"""Events and a person's own rows through a real broker: what is read is what was made."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from sandbox import stack as services
from sandbox.schema_ids import schema_ids
from sandbox.settings import PROJECT
from sandbox.streams import STREAMS
from sandbox.streams.faults import FAULTS
from sandbox.streams.pagila.sales import sales
from sandbox.streams.timeline import Plan, timeline
from sandbox.times import instant_micros
from tests.python.conftest import Stack, make_home, program_environment

STREAM = STREAMS["pagila.sales"]
SANDBOX = str(Path(sys.executable).parent / "sandbox")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A sandbox for these tests alone: they fill its topic with broken records."""
    home = make_home(tmp_path_factory.mktemp("own home"))
    try:
        services.up(home)
        yield Stack(home, program_environment(home))
    finally:
        services.down(home)


def ends(stack: Stack) -> dict[int, int]:
    """The end offset of each partition."""
    consumer = Consumer(
        {"bootstrap.servers": stack.home.bootstrap_servers, "group.id": "t"}
    )
    found = {
        number: consumer.get_watermark_offsets(TopicPartition(STREAM.topic, number))[1]
        for number in range(STREAM.partitions)
    }
    consumer.close()
    return found


def read(stack: Stack, begin: dict[int, int]) -> dict[int, list[Message]]:
    """All records from the given offsets to the end, by partition, in order."""
    end = ends(stack)
    consumer = Consumer(
        {"bootstrap.servers": stack.home.bootstrap_servers, "group.id": "t"}
    )
    consumer.assign(
        [
            TopicPartition(STREAM.topic, number, offset)
            for number, offset in begin.items()
        ]
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


def test_what_is_read_is_what_the_plan_says(stack: Stack) -> None:
    before = ends(stack)
    command = (
        "sandbox produce pagila --count 5000 --seed 9 --start 2026-01-05T09:00Z --span 3h"
        " --late 0.05 --bad 0.02 --json"
    )
    told = json.loads(stack.run(*command.split()).stdout)
    by_partition = read(stack, before)

    start = instant_micros("2026-01-05T09:00Z") // 1_000
    first_id = sum(before.values()) + 1
    plan = Plan(9, 5_000, start, 10_800_000 / 5_000, 0.05, 0.02, first_id)
    wanted = list(timeline(plan, sales(*schema_ids(stack.home, STREAM))))
    home_of: dict[bytes, int] = {}
    for number, messages in by_partition.items():
        for message in messages:
            key = message.key()
            assert isinstance(key, bytes)
            assert home_of.setdefault(key, number) == number
    for number, messages in by_partition.items():
        assert [(m.key(), m.value(), m.timestamp()[1]) for m in messages] == [
            (key, value, timestamp)
            for key, value, timestamp, *_ in wanted
            if key is not None and home_of[key] == number
        ]
    assert all(len(messages) > 500 for messages in by_partition.values())

    kinds = Counter(record.kind for record in wanted)
    assert told["bad_by_kind"] == {name: kinds[name] for name in FAULTS}
    assert (told["records"], told["delivered"], told["bad"]) == (5_000, 5_000, 100)
    assert (told["late"], told["sales"], told["first_id"]) == (250, 4_900, first_id)


def test_a_second_run_does_not_repeat_payment_ids_and_says_so_in_one_line(
    stack: Stack,
) -> None:
    before = sum(ends(stack).values())
    for _ in range(2):
        done = stack.run("sandbox", "produce", "pagila", "--count", "10")
        line = re.fullmatch(
            r"10 records to .* payment_id from (\d+), seed 1\n", done.stdout
        )
        assert line is not None
        assert int(line[1]) == before + 1
        assert done.stderr == ""
        before += 10


def test_a_paced_stream_runs_until_ctrl_c_and_tells_what_it_sent(stack: Stack) -> None:
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
    told = json.loads(out)
    arrived = sum(ends(stack).values()) - sum(before.values())
    assert told["delivered"] == told["records"] == arrived
    assert 30 <= told["records_per_second"] <= 45


def test_own_rows_arrive_with_their_times_and_the_misfits_are_told(
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
    assert {m.key() for m in arrived} == {
        b"\x00" + key_id.to_bytes(4, "big") + bytes([14])
    }


def test_schema_ids_are_those_of_the_registry_and_stay(stack: Stack) -> None:
    assert schema_ids(stack.home, STREAM) == schema_ids(stack.home, STREAM)


def test_a_missing_topic_is_one_line_with_the_fix(stack: Stack) -> None:
    admin = AdminClient({"bootstrap.servers": stack.home.bootstrap_servers})
    for answer in admin.delete_topics([STREAM.topic], operation_timeout=20).values():
        answer.result()
    try:
        done = stack.run("sandbox", "produce", "pagila", check=False)
        assert done.returncode == 2
        assert f"topic {STREAM.topic} does not exist" in done.stderr
        assert "`sandbox up` creates it" in done.stderr
        assert done.stderr.count("\n") == 1
        assert STREAM.topic not in admin.list_topics(timeout=10).topics
    finally:
        stack.run("sandbox", "up")


@pytest.mark.parametrize("command", ["produce", "replay"])
def test_help_teaches_by_example(stack: Stack, command: str) -> None:
    arguments = ["produce", "pagila"] if command == "produce" else ["replay"]
    assert f"sandbox {command} " in stack.run("sandbox", *arguments, "--help").stdout
