"""Steps on the emulator with dbt as a person types it, and what the marts must be after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.settings import Home
from tests.python.conftest import make_home
from tests.python.parity.relations import load
from tests.python.parity.trial import external_schema, read_standin, standin
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import run_steps
from tests.python.spark.test_increment_stops import ALL, SALES, WINDOWS, Stops

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
# A target that writes to its own folder finds the project parsed.
OUTS = {STANDIN: "standin"}


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

    def begin(self, selection: list[str]) -> None:
        """The first records, and the first build of it."""
        self.load()
        self.steps.append(external_schema(self.home, self.project))
        self.type("first", selection)

    def type(self, name: str, words: list[str], target: str = STANDIN) -> None:
        self.add(name, run=self.command(words, target))

    def command(self, words: list[str], target: str = STANDIN, out: str = "") -> list[str]:
        """dbt with its options; runs at one time each need another ``out`` to write to."""
        prefix, suffix = self.around(out or OUTS.get(target, target))
        return [*prefix, *words, "--target", target, *suffix]

    def ask(self, *words: str) -> dict[str, Any]:
        """A step of ``tests/python/parity/client.py``."""
        port = str(self.home.ports["redshift"])
        return {"run": ["python", "-m", "tests.python.parity.client", port, *words]}

    def stop_and_mend(self, name: str, words: list[str], target: str = STANDIN) -> None:
        self.type(name, words, target)
        self.mend(name)

    def mend(self, name: str, *inside: int) -> None:
        """What a message names; ``inside`` leads to its step where there are several."""
        prefix, suffix = self.around("standin")
        reported = {"as reported by": [self.names[name], *inside]}
        self.add(f"{name}, mended", **reported, run=prefix, words=suffix)

    def same(self, name: str, schema: str = "marts", selection: list[str] = ALL) -> None:
        """Both marts as they are, and made from nothing, with what else is selected."""
        self.type(f"{name}, whole", [*selection, "--full-refresh"], "whole")
        file = self.home.path / f"{name}.json"
        marts = [f"{at}.{mart}" for at in (schema, "whole_marts") for mart in (SALES, WINDOWS)]
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


def do_history(
    folder: Path, history: Callable[[StandinStops], None], schemas: tuple[str, ...]
) -> tuple[dict[str, Any], StandinStops]:
    """Do a history on a new emulator, and give what its steps gave.

    Args:
        folder: Where all of it goes.
        history: Adds the steps, and may change the project.
        schemas: Targets with schemas of their own that it types.
    """
    home = make_home(folder / "sand box")
    project = copy_project(folder / "project")
    with (project / "profiles/profiles.yml").open("a") as profiles:
        profiles.writelines(PROFILE.format(name=name) for name in schemas)
    with standin(home):
        stops = StandinStops(home, project)
        history(stops)
        results = run_steps(home, stops.steps, project)
    return {name: results[at] for name, at in stops.names.items()}, stops


def assert_all_as_a_full_refresh(stops: StandinStops) -> None:
    """What ``StandinStops.same`` read: both marts have rows, those of a full refresh."""
    for name, (file, schema) in stops.files.items():
        rows = {table: sorted(map(str, of.rows)) for table, of in load(file).items()}
        for mart in (SALES, WINDOWS):
            assert rows[f"{schema}.{mart}"], name
            assert rows[f"{schema}.{mart}"] == rows[f"whole_marts.{mart}"], name
