"""One trial of all models, one of all mutants, each done once, and the tables of both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.python.conftest import make_home
from tests.python.parity.mutation import Mutation, run_mutants
from tests.python.parity.report import console, print_mutation, print_trial
from tests.python.parity.trial import Trial, run_trial

DONE: list[Any] = []


def pytest_terminal_summary() -> None:
    """Print what was compared, where it was."""
    for done in DONE:
        if isinstance(done, Trial):
            print_trial(console(), done)
        else:
            print_mutation(console(), done)


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    done = run_trial(make_home(tmp_path_factory.mktemp("parity") / "sand box"))
    DONE.append(done)
    return done


@pytest.fixture(scope="session")
def mutation(tmp_path_factory: pytest.TempPathFactory) -> Mutation:
    done = run_mutants(make_home(tmp_path_factory.mktemp("mutants") / "sand box"))
    DONE.append(done)
    return done
