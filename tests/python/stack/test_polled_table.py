"""A table captured by queries: what they see, what they cannot see, and that a kill loses nothing.

Fails when a polled row is lost or doubled on its way from PostgreSQL to current state.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from sandbox.databases.known import DATABASES
from sandbox.events.poll import PollTopic
from sandbox.events.polled_table import PolledTable
from sandbox.processes import programs
from sandbox.services import postgres
from sandbox.services.kafka import end_offsets, present_topics
from sandbox.settings import PROJECT, Home
from tests.python.conftest import Stack, own_stack
from tests.python.programs import ran

pytestmark = pytest.mark.nightly

PAGILA = DATABASES["pagila"]
PAGE = PROJECT / "docs" / "query-based-capture.md"
POLLED = PolledTable(PAGILA, PAGILA.table("address"), "last_update")
NO_TESTS = ("--exclude-resource-type", "test", "unit_test")
INSERT = (
    "insert into address (address_id, address, district, city_id, phone)"
    " select id, id || ' Hanoi Way', 'Galicia', 7, %s from generate_series(%s, %s) as id"
)
UPDATE = "update address set phone = %s where address_id = %s"
# A program that is killed at one moment of its poll.
KILLED = """
import os, signal, sys
from sandbox import cli
from sandbox.events import poll
{moment}
sys.argv = ["sandbox", "poll", "pagila.address", "--once", "--delay", "0"]
cli.main()
"""
BEFORE_IT_NOTES = "poll.PollTopic.note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
AMID_ITS_ROWS = """
rows = poll.PolledTable.rows
def some(*given):
    for number, row in enumerate(rows(*given)):
        if number == 1_000:
            # What was handed over by now is with the broker, the rest is with nobody.
            topics[0]._producer.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        yield row
topics = []
made = poll.PollTopic.__init__
poll.PollTopic.__init__ = lambda self, *given: topics.append(self) or made(self, *given)
poll.PolledTable.rows = some
"""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A broker and a database for one test; no connector, no log of changes."""
    path = tmp_path / "sand box"
    target = str(path.resolve() / "target")
    with own_stack(path, "kafka", "registry", "postgres", DBT_TARGET_PATH=target) as found:
        yield found


def write(home: Home, statement: str, *values: object) -> None:
    with closing(postgres.connect(home, "pagila")) as connection:
        connection.cursor().execute(statement, values)
        connection.commit()


def poll(stack: Stack, delay: float = 0) -> str:
    words = ("poll", "pagila.address", "--once", "--delay", f"{delay:g}")
    return stack.run("sandbox", *words).stdout


def killed(stack: Stack, moment: str) -> None:
    program = KILLED.format(moment=moment)
    done = ran([sys.executable, "-c", program], env=stack.env)
    assert done.returncode == -signal.SIGKILL, done.stderr


def sent(home: Home) -> list[dict[str, Any]]:
    """All rows in the topic, those of one key in their order."""
    if POLLED.topic not in present_topics(home):
        return []
    left = end_offsets(home, POLLED.topic)
    found = []
    with closing(
        Consumer({"bootstrap.servers": home.bootstrap_servers, "group.id": "test"})
    ) as client:
        places = [TopicPartition(POLLED.topic, at, OFFSET_BEGINNING) for at in left]
        client.assign(places)
        for _ in range(sum(left.values())):
            message = client.poll(30)
            assert message is not None
            assert message.error() is None
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            row = json.loads(value)
            assert json.loads(key) == {"address_id": row["address_id"]}
            found.append(row)
    return found


def phones(home: Home, row: int) -> list[str]:
    return [one["phone"] for one in sent(home) if one["address_id"] == row]


def build(stack: Stack) -> None:
    stack.run("spark-ingest", "run", "pagila.polled_address", "--once")
    stack.run(*("dbt", "build", "--select", "+int_pagila__polled_address_current"), *NO_TESTS)


def asked(stack: Stack, query: str) -> list[list[Any]]:
    said = stack.run("sandbox", "sql", "--format", "json", query).stdout
    return [list(row.values()) for row in json.loads(said)]


def test_what_queries_see_of_a_table_is_its_state_but_for_what_they_cannot_see(
    stack: Stack,
) -> None:
    home = stack.home
    write(home, INSERT, "old", 1, 4)
    poll(stack)
    build(stack)
    write(home, INSERT, "new", 5, 5)
    write(home, UPDATE, "changed", 1)
    write(home, UPDATE, "between two polls", 2)
    write(home, UPDATE, "last", 2)
    write(home, "alter table address disable trigger last_updated")
    write(home, UPDATE, "beside the trigger", 3)
    write(home, "alter table address enable trigger last_updated")
    write(home, "delete from address where address_id = 4")
    poll(stack)
    write(home, UPDATE, "killed", 1)
    killed(stack, BEFORE_IT_NOTES)
    poll(stack)
    build(stack)

    models = "intermediate.int_pagila__polled_address"
    current = asked(stack, f"select address_id, phone from {models}_current order by 1")
    versions = asked(
        stack,
        "select address_id, phone, is_current, is_deleted,"
        " coalesce(valid_to_at > valid_from_at, true)"
        f" from {models}_history order by address_id, valid_from_position",
    )

    # The database has 3 with another phone, and 4 no more.
    assert current == [[1, "killed"], [2, "last"], [3, "old"], [4, "old"], [5, "new"]]
    assert versions == [
        [1, "old", False, False, True],
        [1, "changed", False, False, True],
        # It was sent twice, and is one version.
        [1, "killed", True, False, True],
        [2, "old", False, False, True],
        [2, "last", True, False, True],
        [3, "old", True, False, True],
        [4, "old", True, False, True],
        [5, "new", True, False, True],
    ]
    assert phones(home, 1) == ["old", "changed", "killed", "killed"]


def test_a_poll_that_is_killed_sends_its_rows_again(stack: Stack) -> None:
    home = stack.home
    # All of one time: more than are fetched at once.
    write(home, INSERT, "one time", 1, 2_500)

    killed(stack, AMID_ITS_ROWS)
    halfway = len(sent(home))
    killed(stack, BEFORE_IT_NOTES)
    said = poll(stack)

    assert halfway == 1_000
    assert "2,500 rows of pagila.address to pagila.poll.address" in said
    times = Counter(row["address_id"] for row in sent(home))
    assert set(times) == set(range(1, 2_501))
    assert set(times.values()) == {2, 3}
    assert poll(stack).startswith("0 rows")


def test_a_row_that_commits_late_is_lost_unless_it_is_waited_for(stack: Stack) -> None:
    home = stack.home
    write(home, INSERT, "old", 1, 2)
    poll(stack)
    with closing(postgres.connect(home, "pagila")) as late:
        late.cursor().execute(UPDATE, ("late", 1))
        write(home, UPDATE, "beside it", 2)
        poll(stack)
        late.commit()
    poll(stack)
    lost = phones(home, 1)
    with closing(postgres.connect(home, "pagila")) as late:
        late.cursor().execute(UPDATE, ("late again", 1))
        write(home, UPDATE, "beside it again", 2)
        early = poll(stack, delay=3)
        late.commit()
    time.sleep(3.1)
    poll(stack, delay=3)

    assert lost == ["old"]
    assert early.startswith("0 rows")
    assert phones(home, 1) == ["old", "late again"]
    assert phones(home, 2) == ["old", "beside it", "beside it again"]


def test_polls_go_on_until_ctrl_c_which_keeps_the_place(stack: Stack) -> None:
    home = stack.home
    write(home, INSERT, "old", 1, 3)
    command = [programs.path_of("sandbox"), "poll", "pagila.address"]
    with subprocess.Popen(
        [*command, "--every", "0.2", "--delay", "0"],
        env=stack.env,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    ) as polling:
        assert polling.stdout is not None
        first = polling.stdout.readline()
        write(home, UPDATE, "seen", 2)
        second = polling.stdout.readline()
        polling.send_signal(signal.SIGINT)
        code = polling.wait(30)

    assert first.startswith("3 rows of pagila.address")
    assert second.startswith("1 rows of pagila.address")
    assert code == 0
    assert phones(home, 2) == ["old", "seen"]
    with closing(PollTopic(home, POLLED.topic)) as topic:
        place = topic.place()
    assert place is not None
    assert place in second


def test_the_page_compares_what_queries_and_the_log_see(stack: Stack) -> None:
    typed = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)

    said = ""
    for line in "".join(typed).splitlines():
        said = stack.run(*shlex.split(line)).stdout

    queries, log = map(int, re.findall(r"^(?:queries|the log) +(\d+)$", said, re.MULTILINE))
    columns = "address_id, street_address, postal_code, phone, updated_at"
    unseen = asked(
        stack,
        f"select {columns} from intermediate.int_pagila__address_current"
        f" except select {columns} from intermediate.int_pagila__polled_address_current",
    )
    assert queries > log > 0
    # What is there is as it is; queries know of more, which is not there any more.
    assert unseen == []
