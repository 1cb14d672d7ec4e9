"""The mechanisms that tests are there for: each can be taken out, and its test is run."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.settings import PROJECT
from tests.python.mutations.__main__ import chosen
from tests.python.mutations.page import PAGE, rows, with_trials
from tests.python.mutations.planting import Mechanism, mechanisms, taken_out, without
from tests.python.mutations.trial import Outcome, Said, Trial, outcome_of, read_report
from tests.python.programs import ran

MECHANISMS = mechanisms()
ONE = Mechanism("One holds", "x.md#y", "a.py", "held = True", "held = False", "t.py::t")
each = pytest.mark.parametrize("one", MECHANISMS, ids=lambda one: one.why)


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).lower().replace(" ", "-") for head in heads}


def test_there_are_twenty_and_each_has_its_own_sentence() -> None:
    assert len({one.why for one in MECHANISMS}) == len(MECHANISMS) >= 20


@each
def test_each_is_found_once_in_its_file_and_what_is_left_is_python(one: Mechanism) -> None:
    without(one, (PROJECT / one.file).read_text())


@each
def test_each_is_said_by_a_document(one: Mechanism) -> None:
    page, _, anchor = one.doc.partition("#")

    assert anchor in anchors(PROJECT / "docs" / page)


def test_each_test_is_one_that_make_test_runs() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    recipe = re.search(r"^test:.*\n(?:\t.*\n)*?\t.*pytest .*-m '([^']+)'", makefile, re.MULTILINE)
    assert recipe is not None
    tests = sorted({one.node_id for one in MECHANISMS})

    done = ran([sys.executable, "-m", "pytest", "--collect-only", "-qm", recipe[1], *tests])

    assert done.returncode == 0, done.stdout + done.stderr
    collected = set(done.stdout.split("\n"))
    collected |= {line.partition("[")[0] for line in collected}
    assert [test for test in tests if test not in collected] == []


def test_a_mechanism_is_taken_out_for_a_while(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("held = True\n")

    with taken_out(ONE, tmp_path):
        assert file.read_text() == "held = False\n"
    assert file.read_text() == "held = True\n"


def test_lines_are_found_as_far_as_they_are_indented() -> None:
    lines = replace(ONE, old="if a:\n    b()\n\nc()", new="if a:\n    pass\nd()")
    text = "def f():\n    if a:\n        b()\n\n    c()\n"

    assert without(lines, text) == ("def f():\n    if a:\n        pass\n    d()\n")


@pytest.mark.parametrize(
    ("text", "new", "said"),
    [
        ("held = False\n", "held = 1", "0 times"),
        ("held = True\nheld = True\n", "held = 1", "2 times"),
        ("held = True\n", "held =", "invalid syntax"),
        ("held = True\n", "held = True", "`new` is its `old`"),
    ],
)
def test_what_cannot_be_taken_out_is_named(text: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        without(replace(ONE, new=new), text)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (Said("passed"), Outcome.SURVIVED),
        (Said("failed", "AssertionError: assert 1 == 2"), Outcome.CAUGHT),
        (Said("failed", "assert 1 == 2"), Outcome.CAUGHT),
        (Said("failed", "Failed: DID NOT RAISE LeaseLost"), Outcome.CAUGHT),
        (Said("failed", "NameError: name 'held' is not defined"), Outcome.BROKEN),
        (Said("error", "AssertionError: of a fixture"), Outcome.BROKEN),
        (Said("skipped", "no Chromium"), Outcome.BROKEN),
        (None, Outcome.BROKEN),
    ],
)
def test_only_an_assertion_catches(said: Said | None, outcome: Outcome) -> None:
    assert outcome_of(said)[0] is outcome


def test_a_test_without_parameters_is_all_that_it_is_run_with(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="a.t" name="t[1]"/>'
        '<testcase classname="a.t" name="t[2]"><failure message="assert 2&#10;more"/>'
        '</testcase><testcase classname="a.t" name="other"/></testsuite></testsuites>'
    )

    found = read_report(report, ["a/t.py::t", "a/t.py::t[1]", "a/t.py::gone"])

    assert found == {
        "a/t.py::t": Said("failed", "assert 2"), "a/t.py::t[1]": Said("passed"),
    }  # fmt: skip


def test_rows_of_what_was_not_tried_stay() -> None:
    other = replace(ONE, why="Another holds")
    page = "<!-- generated: mechanisms -->\n<!-- /generated -->\n"

    first = with_trials(page, [ONE, other], [Trial(ONE, Outcome.CAUGHT, "", 3.2)])
    then = with_trials(first, [ONE, other], [Trial(other, Outcome.SURVIVED, "", 1)])

    assert list(rows(first).values()) == ["3", "not run"]
    assert list(rows(then).values()) == ["3", "**survived**"]


def test_the_page_has_the_row_of_each() -> None:
    page = PAGE.read_text()

    assert with_trials(page, MECHANISMS, []) == page


def test_words_choose() -> None:
    other = replace(ONE, file="b.py")

    assert chosen([ONE, other], []) == [ONE, other]
    assert chosen([ONE, other], ["B.PY", "nothing"]) == [other]
