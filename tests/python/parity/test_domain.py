"""One domain on both engines: what every change is tried with; `make parity` takes all.

Fails when a model of one domain differs between the two engines.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.settings import PROJECT
from tests.python.conftest import make_home
from tests.python.parity.trial import ENGINES, run_trial

pytestmark = pytest.mark.nightly

DOMAIN = "models/marts/rentals"


def test_both_engines_hold_the_same_of_a_domain(tmp_path: Path) -> None:
    marts = {f"marts.{file.stem}" for file in (PROJECT / DOMAIN).glob("*.sql")}

    trial = run_trial(
        make_home(tmp_path / "sand box"), rounds=["first", "increment"], select=[f"+path:{DOMAIN}"]
    )

    assert trial.failures == []
    for name, compared in trial.compared.items():
        assert marts < compared.keys(), name
        for relation, found in compared.items():
            assert not found.differences, (name, relation, found.differences[:20])
            assert found.spark.rows, (name, relation)
    for fact in (name for name in marts if ".fct_" in name):
        for engine in ENGINES:
            first, second = (
                trial.compared[name][fact].identities[engine] for name in ("first", "increment")
            )
            assert first == second, f"{fact} was recreated by {engine}"
    ran = trial.built["first"].statuses[ENGINES[1]]
    assert sum(name.startswith("unit_test.") for name in ran) > 10
