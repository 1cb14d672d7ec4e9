"""A publisher under load is killed: its topic ends as its mart, and shows no change twice.

Fails when a publisher killed at random loses a row of its mart, or sends one twice.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.python.fault.harness import Account, Ingest, record
from tests.python.stack.conftest import Feed
from tests.python.stack.published import OF_CHANGE, Sales, Sent, last_rows

ROUNDS = 10
NEW_ROWS = 20_000


def sent_twice(records: list[Sent]) -> int:
    """How many records say of a row what the record of its key before them said."""
    doubled, last = 0, dict[tuple[Any, ...], Any]()
    for key, value in records:
        row = None
        if value is not None and value["_op"] != "d":
            row = {name: value[name] for name in value if name not in OF_CHANGE}
        place = tuple(key.values())
        doubled += place in last and last[place] == row
        last[place] = row
    return doubled


@pytest.mark.long
def test_killed_ten_times_while_it_publishes(feed: Feed, tmp_path: Path) -> None:
    chance = random.Random(3)
    sales = Sales(feed, "killed_sales", tmp_path / "manifest.json", envelope="changes")
    sales.declare()
    feed.services.spark.sql("create namespace if not exists lake.marts")
    sales.make()
    words, command = ("--every", "1s"), "publish"
    for number in range(ROUNDS):
        publisher = Ingest(feed, *words, command=command, manifest=sales.manifest)
        try:
            sales.sql(
                f"insert into {{mart}} select concat('r', id), timestamp '2026-01-01'"
                f" + make_interval(0, 0, 0, id % 9), 1 from"
                f" range({number * NEW_ROWS}, {(number + 1) * NEW_ROWS})"
            )
            if number % 3:
                publisher.lines(1)
                sales.sql("update {mart} set amount = amount + 1 where day(at) = 4")
                sales.sql(f"delete from {{mart}} where region like '%{number}7'")
                time.sleep(chance.uniform(0, 4))
            else:
                # In its start-up, or in its first publication.
                time.sleep(chance.uniform(5, 15))
            publisher.kill(chance.choice(["python", "jvm", "both"]))
        finally:
            publisher.close()
    went_on = sales.publish().splitlines()[-1]

    log, rows = sales.log(), sales.rows()
    read = [tuple(row.values()) for row in last_rows(log)]
    found = Account(
        sent=len(log),
        lost=len(rows - set(read)),
        doubled=sent_twice(log),
        strange=len(set(read) - rows),
        proved=sales.command("verify").exit_code == 0,
    )
    sales.sql("drop table {mart} purge")
    record(
        "A publisher killed 10 times",
        "SIGKILL to the Python, the JVM or both, while rows of the mart come, change and go",
        found,
        f"started again: {went_on.partition(': ')[2]}",
    )
