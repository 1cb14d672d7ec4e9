"""On the emulator, too, what would mix rows fails, and the named command fixes it.

The same as ``tests/python/spark/test_increment_stops.py``, with another adapter: each dbt is
a process of its own, as a person types it.

Fails when on the emulator a change that would mix rows does not stop, or the named command does
not fix it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.python.parity.standin_stops import (
    STANDIN,
    StandinStops,
    assert_all_as_a_full_refresh,
    do_history,
)
from tests.python.spark.test_increment_stops import EVERYTHING, RUN, SALES, VIEW, WINDOWS

pytestmark = pytest.mark.long


def history(stops: StandinStops) -> None:
    stops.begin(EVERYTHING)
    stops.load()
    for flags in (["--full-refresh", "--empty"], ["--sample", "3 days"]):
        stops.type(" ".join(flags), [*RUN, *flags])

    seed = str(stops.project / "seeds/sales_regions.csv")
    stops.steps.append({"append": {"file": seed, "text": "Nowhere,Europe\n"}})
    stops.stop_and_mend("seed", EVERYTHING)
    view = f"models/intermediate/rentals/{VIEW}.sql"
    stops.edit(view, "        city,\n", "        upper(city) as city,\n")
    stops.stop_and_mend("view", RUN)
    stops.same("view")

    stops.recreated("first-table")
    stops.type("filled in", RUN)
    stops.sql("delete from bronze.pagila__sales")
    for _ in range(6):
        stops.load()
    stops.recreated("second-table")
    stops.stop_and_mend("recreated", RUN)
    stops.same("recreated")

    prefix, suffix = stops.around("state")
    stops.add("artifacts", run=[*prefix, "parse", "--target", STANDIN, *suffix])
    stops.state = stops.home.path / "out/state"
    defer = ["--defer", "--state", str(stops.state)]
    stops.type("defer", ["run", "--select", WINDOWS, *defer], "ada")
    stops.load()
    stops.type("below", EVERYTHING)
    stops.stop_and_mend("defer again", ["run", "--select", WINDOWS, *defer], "ada")
    clone = ["clone", "--select", SALES, "--state", str(stops.state)]
    stops.stop_and_mend("clone", clone, "ada")
    stops.same("ada", "ada_marts")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], StandinStops]:
    folder = tmp_path_factory.mktemp("standin stops")
    return do_history(folder, history, ("ada", "whole"))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("--full-refresh --empty", "--empty would leave rows out"),
        ("--sample 3 days", "--sample would leave rows out"),
        ("seed", "was built from other code of sales_regions"),
        ("view", f"was built from other code of {VIEW}"),
        ("recreated", "was recreated (second-table)"),
        ("defer again", f"was built from other code of {SALES}"),
        ("clone", "`dbt clone` does not copy the read points of marts"),
    ],
)
def test_what_would_mix_rows_stops_on_redshift(
    trial: tuple[dict[str, Any], StandinStops], step: str, message: str
) -> None:
    found, _ = trial

    assert not found[step]["success"]
    assert message in found[step]["said"]


def test_what_is_named_mends_it_on_redshift(trial: tuple[dict[str, Any], StandinStops]) -> None:
    found, stops = trial

    for name in found:
        if name.endswith(("mended", "whole")) or name in {"first", "filled in", "defer"}:
            assert found[name]["success"], f"{name}: {found[name]['said'][-3000:]}"
    assert_all_as_a_full_refresh(stops)
