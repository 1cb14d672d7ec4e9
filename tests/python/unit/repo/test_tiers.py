"""What each file of tests is there for, and which command runs it, stands in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate.parts import with_parts
from docs.generate.tiers import (
    COMMANDS,
    PAGE,
    PART,
    TESTS,
    commands,
    fails_when,
    files,
    table,
)
from sandbox.settings import PROJECT


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(TESTS)))
def test_a_file_says_which_fault_it_is_there_for(file: Path) -> None:
    fault = fails_when(file)

    assert fault, f"{file}: its docstring has no paragraph `Fails when ...`"
    assert len(fault) <= 120


def test_the_page_has_every_file() -> None:
    page = PAGE.read_text()

    assert with_parts(page, {PART: table()}) == page, (
        "run `python -m docs.generate.tiers`"
    )


def test_commands_follow_from_markers(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest\n\n"
        "def test_one(): ...\n\n"
        "@pytest.mark.aws\n@pytest.mark.long\n"
        "def test_two(): ...\n\n"
        "@pytest.mark.nightly\n"
        "def test_three(): ...\n"
    )
    assert commands(file) == ["test", "test-all", "test-long"]

    file.write_text(
        "import pytest\n\npytestmark = pytest.mark.nightly\n\n" + file.read_text()
    )
    assert commands(file) == ["test-all", "test-long"]


def test_each_tier_leaves_out_what_the_slower_ones_run() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    chosen = {
        target: set(re.findall(r"not (\w+)", expression))
        for target, expression in re.findall(
            r"^(test(?:-all)?):.*\n(?:\t.*\n)*?\t.*pytest -m '([^']+)'",
            makefile,
            re.MULTILINE,
        )
    }

    assert chosen == {
        "test": set(COMMANDS),
        "test-all": set(COMMANDS) - {"nightly"},
    }
