"""The demo whole, on services that run already."""

from __future__ import annotations

import re

from tests.python.conftest import Stack
from tests.python.stack.conftest import DemoRun


def test_the_demo_accounts_for_every_event_and_leaves_what_it_found(
    stack: Stack, demo: DemoRun
) -> None:
    numbers = {
        name: int(number.replace(",", ""))
        for name, number in re.findall(
            r"^  ([a-z ]+?) +([\d,]+)$", demo.report, re.MULTILINE
        )
    }
    assert numbers == {
        "produced": 2000,
        "in bronze": 1980,
        "in quarantine": 20,
        "missing": 0,
        "doubled": 0,
    }
    assert re.search(
        r"dbt +\d+ models, 1 seed, \d+ data tests, \d+ unit tests: all good",
        demo.report,
    )
    assert "Done in" in demo.report
    assert stack.run("sandbox", "status").returncode == 0
    proof = stack.run("spark-ingest", "verify", "pagila").stdout
    assert "every one of 2,000 records is in exactly one table, exactly once" in proof
