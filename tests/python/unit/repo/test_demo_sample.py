"""README's sample of the demo is a real run's, and of the project as it is."""

from __future__ import annotations

import re

import pytest

from docs.generate.demo_sample import PAGE, SAMPLE, sample
from docs.generate.domain_pages import Manifest
from docs.generate.parts import GENERATED
from sandbox.tour import exclusions
from sandbox.tour.scenarios import EVENTS

LOG = """\
noise of a first start
[1/6] parts        0.0 s  all there
[5/6] dbt build   40.0 s  2 models: all good
                          left out: 3 tests
  stream     produced
  all               4

Largest (marts.x):
  region  amount
  ------  ------
  Asia      8.61
  Europe    7.20
  Africa    5.02

Most (marts.y):
  name    sold
  ------  ----
  Kale       1

Done in 83 s. The docs are in target/index.html: `make docs` serves them.
What to try next:
"""


def part(name: str) -> str:
    (found,) = (p[3] for p in GENERATED.finditer(PAGE.read_text()) if p[2] == name)
    return found


def test_a_sample_is_the_run_with_the_first_row_of_each_table() -> None:
    assert sample(LOG) == [
        "```",
        "$ make demo",
        "[1/6] parts        0.0 s  all there",
        "[5/6] dbt build   40.0 s  2 models: all good",
        "                          left out: 3 tests",
        "  stream     produced",
        "  all               4",
        "",
        "Largest (marts.x):",
        "  region  amount",
        "  ------  ------",
        "  Asia      8.61",
        "  …",
        "",
        "Most (marts.y):",
        "  name    sold",
        "  ------  ----",
        "  Kale       1",
        "",
        "Done in 83 s. The docs are in target/index.html: `make docs` serves them.",
        "```",
    ]


def test_a_demo_that_did_not_end_well_is_no_sample() -> None:
    with pytest.raises(SystemExit, match="no demo that ended well"):
        sample("error: step 2")


def test_the_readme_counts_what_the_demo_builds_of_this_project(manifest: Manifest) -> None:
    captured = exclusions.unfilled(manifest, lambda _table: False)
    built = exclusions.built(manifest, captured)
    shown = part(SAMPLE)

    line = f"{built['model']} models, {built['seed']} seed, {built['test']} data tests"
    # Where the step is, and where the report is.
    assert shown.count(f"{line}: all good") == 2, "docs.generate.demo_sample writes it"
    assert exclusions.summary(manifest, captured) in shown
    assert re.findall(r"^\[\d/\d\] (\w+(?: \w+)*)", shown, re.MULTILINE) == [*EVENTS.steps]
