"""The table of how long the tests take, and the run that it is made from."""

from __future__ import annotations

import re

from docs.generate.parts import with_parts
from docs.generate.times import PAGE, PART, table
from sandbox.settings import PROJECT

OLD = """before
<!-- generated: times -->
| command | seconds |
|---|---:|
| `make lint` | 44 |
| `make test-long` | 3,600 |
<!-- /generated -->
"""


def test_what_was_measured_is_new_and_the_rest_stays() -> None:
    lines = table(OLD, {"make lint": 51, "make test": 1200})

    assert lines[2:] == [
        "| `make lint` | 51 |",
        "| `make test-long` | 3,600 |",
        "| `make test` | 1,200 |",
    ]


def test_the_page_has_the_time_of_each_step_of_the_run() -> None:
    run = (PROJECT / ".ci/run").read_text()
    steps = re.findall(r"^step (.+)$", run, re.MULTILINE)
    page = PAGE.read_text()

    assert len(steps) == 3
    rows = table(page, {})
    assert with_parts(page, {PART: rows}) == page
    for step in steps:
        assert any(row.startswith(f"| `{step}` |") for row in rows), step
