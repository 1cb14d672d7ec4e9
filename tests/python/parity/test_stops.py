"""On the stand-in, too, what would mix rows stops, and what is named mends it.

The same as ``tests/python/spark/test_increment_stops.py``, with another adapter: each dbt is
a process of its own, as a person types it.

Fails when on the stand-in a change that would mix rows does not stop, or the named command does
not mend it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.conftest import make_home
from tests.python.parity.relations import load
from tests.python.parity.trial import external_schema, read_standin, standin
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import run_steps
from tests.python.spark.test_increment_stops import (
    ALL,
    EVERYTHING,
    RUN,
    SALES,
    VIEW,
    WINDOWS,
    Stops,
)

pytestmark = pytest.mark.long

PROFILE = """
    {name}:
      type: redshift
      host: 127.0.0.1
      port: "{{{{ env_var('REDSHIFT_STANDIN_PORT', '15439') | int }}}}"
      user: millrace
      password: millrace
      dbname: dev
      schema: {name}
      sslmode: disable
      threads: 4
"""
STANDIN = "redshift-standin"


class StandinStops(Stops):
    """The same steps, of which those with dbt are typed.

    Args:
        home: The sandbox.
        project: A copy of the project, which they change.
    """

    def __init__(self, home: Home, project: Path) -> None:
        super().__init__(project, home.path / "state")
        self.home = home
        self.files: dict[str, tuple[Path, str]] = {}

    def type(self, name: str, words: list[str], target: str = STANDIN) -> None:
        prefix, suffix = self.around("standin")
        command = [*prefix, *words, "--target", target, *suffix]
        self.add(name, run=command)

    def stop_and_mend(self, name: str, words: list[str], target: str = STANDIN) -> None:
        self.type(name, words, target)
        prefix, suffix = self.around("standin")
        told = {"as told by": self.names[name], "run": prefix, "words": suffix}
        self.add(f"{name}, mended", **told)

    def same(self, name: str, schema: str = "marts") -> None:
        """Both marts as they are, and made from nothing."""
        self.type(f"{name}, whole", [*ALL, "--full-refresh"], "whole")
        file = self.home.path / f"{name}.json"
        marts = [
            f"{at}.{mart}"
            for at in (schema, "whole_marts")
            for mart in (SALES, WINDOWS)
        ]
        self.steps.append(read_standin(self.home, marts, file))
        self.files[name] = (file, schema)

    def around(self, target: str) -> tuple[list[str], list[str]]:
        logs = str(self.home.logs / target)
        return (
            ["dbt", "--warn-error", "--no-use-colors", "--log-path", logs],
            [
                *("--project-dir", str(self.project)),
                *("--profiles-dir", str(self.project / "profiles")),
                *("--target-path", str(self.home.path / "out" / target)),
            ],
        )


def history(stops: StandinStops) -> None:
    stops.load()
    stops.steps.append(external_schema(stops.home, stops.project))
    stops.type("first", EVERYTHING)
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

    stops.made_anew("first-table")
    stops.type("filled in", RUN)
    stops.sql("delete from bronze.pagila__sales")
    for _ in range(6):
        stops.load()
    stops.made_anew("second-table")
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
def trial(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Any], StandinStops]:
    folder = tmp_path_factory.mktemp("standin stops")
    home = make_home(folder / "sand box")
    project = copy_project(folder / "project")
    with (project / "profiles/profiles.yml").open("a") as profiles:
        profiles.write(PROFILE.format(name="ada") + PROFILE.format(name="whole"))
    with standin(home):
        stops = StandinStops(home, project)
        history(stops)
        results = run_steps(home, stops.steps, project)
    return {name: results[at] for name, at in stops.names.items()}, stops


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("--full-refresh --empty", "--empty would leave rows out"),
        ("--sample 3 days", "--sample would leave rows out"),
        ("seed", "was built from other code of sales_regions"),
        ("view", f"was built from other code of {VIEW}"),
        ("recreated", "was recreated (second-table)"),
        ("defer again", f"was built from other code of {SALES}"),
        ("clone", "`dbt clone` does not copy how far a mart has read"),
    ],
)
def test_what_would_mix_rows_stops_on_redshift(
    trial: tuple[dict[str, Any], StandinStops], step: str, message: str
) -> None:
    found, _ = trial

    assert not found[step]["success"]
    assert message in found[step]["said"]


def test_what_is_named_mends_it_on_redshift(
    trial: tuple[dict[str, Any], StandinStops],
) -> None:
    found, stops = trial

    for name in found:
        if name.endswith(("mended", "whole")) or name in {
            "first",
            "filled in",
            "defer",
        }:
            assert found[name]["success"], f"{name}: {found[name]['said'][-3000:]}"
    for name, (file, schema) in stops.files.items():
        rows = {table: sorted(map(str, of.rows)) for table, of in load(file).items()}
        for mart in (SALES, WINDOWS):
            assert rows[f"{schema}.{mart}"], name
            assert rows[f"{schema}.{mart}"] == rows[f"whole_marts.{mart}"], name
