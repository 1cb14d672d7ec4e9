"""Models of one's own beside the project's, on both engines, as dbt teaches them.

Fails when somebody's own source, snapshot, incremental model or package does not do what dbt does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.adopter import FIRST, MART, MODELS, ROWS, THEN, adopted_project
from tests.python.conftest import make_home
from tests.python.parity.relations import load
from tests.python.parity.trial import ENGINES, external_schema, read_standin, standin, standin_dbt
from tests.python.spark.lake_steps import run_steps

TABLES = list(MODELS.values())
RUN = ["run", "--select", *MODELS]
# Each with the adapter's own strategy, and with one of the project's: without an increment, and
# with one that does not know what it reads.
OWN = 'materialized="incremental", unique_key="payment_id"'
OURS = 'materialized="incremental", incremental_strategy="rewrite"'
BEGUN = '{% set increment = begin_increment(time_column="loaded_at") %}\n'
TYPED = {
    "seed": ["seed", "--select", "countries"],
    "snapshot": ["snapshot"],
    "first": RUN,
    "snapshot again": ["snapshot"],
    "then": RUN,
    "the mart alone": ["build", "--select", "fct_account_payments"],
    "everything of theirs": ["build", "--select", *MODELS, "accounts_snapshot"],
    "fresh": ["source", "freshness", "--select", "source:salesforce"],
    "stale": ["source", "freshness", "--select", "source:finance"],
    "no increment": ["run", "--select", "fct_account_payments"],
    "not followed": ["run", "--full-refresh", "--select", "fct_account_payments"],
}
STOPS = {
    "stale": "payments",
    "no increment": "has the incremental_strategy rewrite and begins no increment",
    "not followed": "reads crm.crm_payments, snapshots.accounts_snapshot, whose changes",
}

pytestmark = pytest.mark.nightly


class Adopter:
    """Steps that are done on both engines.

    Args:
        home: The sandbox.
        project: A copy of the project with the adopter's files.
    """

    def __init__(self, home: Home, project: Path) -> None:
        self.home = home
        self.project = project
        self.steps: list[dict[str, Any]] = []
        self.typed: dict[str, int] = {}
        self.read_at: dict[str, int] = {}

    def sql(self, statement: str) -> None:
        port = str(self.home.ports["redshift"])
        client = ["python", "-m", "tests.python.parity.client", port, "sql", statement]
        self.steps += [{"sql": statement}, {"run": client}]

    def type(self, name: str) -> None:
        self.typed[name] = len(self.steps)
        there = standin_dbt(self.home, *TYPED[name], project=self.project)
        self.steps.append({"together": [{"dbt": TYPED[name]}, there]})

    def read(self, name: str) -> None:
        self.read_at[name] = len(self.steps)
        there = read_standin(self.home, TABLES, self.file(name))
        self.steps.append({"together": [{"read": TABLES}, there]})

    def file(self, name: str) -> Path:
        return self.home.path / f"{name}.json"

    def edit(self, old: str, new: str) -> None:
        file = str(self.project / MART)
        self.steps.append({"replace": {"file": file, "old": old, "new": new}})


def history(adopter: Adopter) -> None:
    adopter.steps.append(external_schema(adopter.home, adopter.project))
    for statement in FIRST:
        adopter.sql(statement)
    for name in ("seed", "snapshot", "first"):
        adopter.type(name)
    adopter.read("first")
    for statement in THEN:
        adopter.sql(statement)
    adopter.type("snapshot again")
    adopter.type("then")
    adopter.read("then")
    for name in ("the mart alone", "everything of theirs", "fresh", "stale"):
        adopter.type(name)
    adopter.read("built again")
    adopter.edit(OWN, OURS)
    adopter.type("no increment")
    adopter.edit("with\n", f"{BEGUN}\nwith\n")
    adopter.type("not followed")
    adopter.read("stopped")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Adopter, list[Any]]:
    folder = tmp_path_factory.mktemp("adopter")
    home = make_home(folder / "sand box")
    adopter = Adopter(home, adopted_project(folder / "project"))
    history(adopter)
    with standin(home):
        return adopter, run_steps(home, adopter.steps, adopter.project)


@pytest.mark.parametrize("name", [name for name in TYPED if name not in STOPS])
def test_a_command_does_what_it_does_in_any_project(
    trial: tuple[Adopter, list[Any]], name: str
) -> None:
    adopter, results = trial

    for engine, of in zip(ENGINES, results[adopter.typed[name]], strict=True):
        assert of["success"], f"{engine}: {of['said'][-3000:]}"


@pytest.mark.parametrize("name", ["first", "then", "built again", "stopped"])
def test_both_engines_have_the_rows(trial: tuple[Adopter, list[Any]], name: str) -> None:
    adopter, results = trial
    spark = results[adopter.read_at[name]][0]
    theirs = load(adopter.file(name))
    expected = ROWS.get(name, ROWS["then"])

    for table, rows in expected.items():
        assert sorted(tuple(row) for row in spark[table]["rows"]) == rows, table
        assert sorted(tuple(row) for row in theirs[table].rows) == rows, table


@pytest.mark.parametrize("name", STOPS)
def test_what_dbt_refuses_and_a_fact_that_would_go_stale_stop(
    trial: tuple[Adopter, list[Any]], name: str
) -> None:
    adopter, results = trial

    for engine, of in zip(ENGINES, results[adopter.typed[name]], strict=True):
        assert not of["success"], engine
        assert [line for line in of["said"].splitlines() if STOPS[name] in line], (
            f"{engine}: {of['said'][-3000:]}"
        )
