"""What each file of tests is there for stands in its docstring; each tier runs what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from sandbox.settings import PROJECT

TESTS = PROJECT / "tests/python"
FOLDERS = ("histories", "render", "spark", "stack", "fault", "parity", "platform")
FILES = [file for name in FOLDERS for file in sorted((TESTS / name).glob("test_*.py"))]
FAILS = re.compile(r"^Fails when (.+?)\.?$", re.DOTALL)
# What `make test` leaves out, and `make test-all` but for the first.
SLOWER = {"nightly", "long", "all_models", "fetches"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_a_file_says_which_fault_it_is_there_for(file: Path) -> None:
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    faults = [found[1] for each in text.split("\n\n") if (found := FAILS.match(each))]

    assert faults, f"{file}: its docstring has no paragraph `Fails when ...`"
    assert len(" ".join(faults[0].split())) <= 120


def test_each_tier_leaves_out_what_the_slower_ones_run() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    chosen = {
        target: set(re.findall(r"not (\w+)", expression))
        for target, expression in re.findall(
            r"^(test(?:-all)?):.*\n(?:\t.*\n)*?\t.*pytest -m '([^']+)'", makefile, re.MULTILINE
        )
    }

    assert chosen == {"test": SLOWER, "test-all": SLOWER - {"nightly"}}
