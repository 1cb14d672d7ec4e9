"""One trial of all models, one of all mutants, each done once."""

from __future__ import annotations

import pytest

from tests.python.conftest import make_home
from tests.python.parity.mutation import Mutation, run_mutants
from tests.python.parity.trial import Trial, run_trial


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return run_trial(make_home(tmp_path_factory.mktemp("parity") / "sand box"))


@pytest.fixture(scope="session")
def mutation(tmp_path_factory: pytest.TempPathFactory) -> Mutation:
    return run_mutants(make_home(tmp_path_factory.mktemp("mutants") / "sand box"))
