"""What is unportable is caught before it reaches an account, by some layer.

Fails when an unportable construct is caught by no layer.
"""

from __future__ import annotations

import pytest

from tests.python.parity import page
from tests.python.parity.mutation import CELLS, RENDER, STANDIN, Mutation, mutants

pytestmark = pytest.mark.nightly

NAMES = [mutant.file for mutant in mutants()]


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_builds_on_spark_and_is_caught(mutation: Mutation, name: str) -> None:
    caught = mutation.mutants[name]

    assert caught.spark is not None
    assert caught.layer in {RENDER, STANDIN, CELLS}


def test_what_is_written_instead_is_the_same_on_both_engines(mutation: Mutation) -> None:
    assert mutation.controls
    for name, caught in mutation.controls.items():
        assert caught.spark is not None, name
        assert caught.layer is None, f"{name}: {caught.layer}: {caught.standin}"


def test_every_layer_catches_something(mutation: Mutation) -> None:
    layers = {caught.layer for caught in mutation.mutants.values()}

    assert layers == {RENDER, STANDIN, CELLS}


def test_there_are_more_mutants_than_a_dozen() -> None:
    assert len(set(NAMES)) == len(NAMES) > 12


def test_the_page_shows_what_the_run_found(mutation: Mutation) -> None:
    assert page.FILE.read_text() == page.text(mutation), "run `python -m tests.python.parity.page`"
