"""The demo of the ticket shop, from empty databases to the top events.

Fails when `sandbox demo tickit` loses a record, leaves out a mart, or leaves a service running.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.services import stack as services
from sandbox.services.mariadb import MARIADB
from sandbox.services.stack import State
from sandbox.tour.showings import TICKETS
from tests.python.conftest import Stack, make_home, program_environment

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        MARIADB.lacks_platform() is not None, reason="no MariaDB for this machine"
    ),
]


def test_the_shop_is_shown_twice_and_each_record_is_found(tmp_path: Path) -> None:
    home = make_home(tmp_path / "sand box")
    target = {"DBT_TARGET_PATH": str(home.path / "target")}
    stack = Stack(home, program_environment(home) | target)
    demo = ("sandbox", "demo", "tickit", "--scale", "0.01")
    try:
        first = stack.run(*demo).stdout
        again = stack.run(*demo).stdout
        running = [
            one.service.name
            for one in services.status(home)
            if one.state is not State.STOPPED
        ]
    finally:
        services.down(home)

    assert running == []
    assert "13,527 rows in ems, ecomm, crm, 1,000 changes" in first
    for report in (first, again):
        counted = {
            stream: [int(text.replace(",", "")) for text in numbers.split()]
            for stream, numbers in re.findall(
                r"^  (tickit\.\w+|all)((?: +[\d,]+){5})$", report, re.MULTILINE
            )
        }
        assert counted.keys() == {*TICKETS.streams, "all"}
        for produced, bronze, *lost in counted.values():
            assert produced == bronze
            assert lost == [0, 0, 0]
        assert re.search(
            r"^  dbt: 3\d models, \d+ data tests: all good$", report, re.MULTILINE
        )
        for top in TICKETS.tops:
            after = report.partition(top.title)[2].splitlines()
            # A heading, its line, and the five rows.
            assert all(re.search(r"\d\.\d\d ", row) for row in after[3:8]), top.title
