"""What would mix rows stops, and the command that it names, typed as printed, mends it.

Each time the marts end as a build of all of them in other schemas, recreated.

Fails when a change of code or lake that would mix rows does not stop, or the named command does
not mend it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import do_steps
from tests.python.world.records import DAYS, Records

SALES = "fct_rental_sales"
WINDOWS = "fct_regional_sales_windows"
VIEW = "int_rentals__sales_enriched"
LOG = "bronze.ingest_commits"
NO_TESTS = ["--exclude-resource-type", "test", "unit_test"]
ALL = ["build", "--select", f"+{WINDOWS}", *NO_TESTS]
RUN = ["run", "--select", SALES, WINDOWS]
# The commands that are named run tests, which read what stands beside these.
EVERYTHING = ["build", "--select", "+models/marts", "--exclude", "models/marts/ops"]
EVERYTHING += NO_TESTS
# A developer's own schemas: ada_marts, ada_state and so on.
OWN = ["--target", "ada"]
ADA = """
    ada:
      type: spark
      method: session
      host: NA
      schema: ada
      threads: 4
      server_side_parameters:
        spark.sql.catalogImplementation: in-memory
"""

pytestmark = pytest.mark.long


class Stops:
    """Steps, some of which stop and are mended as they say.

    Args:
        project: A copy of the project, which they change.
        state: Where dbt leaves its artifacts.
    """

    def __init__(self, project: Path, state: Path) -> None:
        self.project = project
        self.state = state
        self.records = Records(seed=2)
        self.steps: list[dict[str, Any]] = []
        self.names: dict[str, int] = {}

    def add(self, name: str, **step: Any) -> None:
        self.names[name] = len(self.steps)
        self.steps.append(step)

    def sql(self, statement: str) -> None:
        self.steps.append({"sql": statement})

    def load(self) -> None:
        rows = self.records.some(5, DAYS, newest=9)["bronze.pagila__sales"]
        self.steps.append({"commit": "bronze.pagila__sales", "rows": rows})

    def sell(self, payment_id: int) -> None:
        sale = self.records.sale(payment_id, f"{DAYS[0]} 10:00:00")
        self.steps.append({"commit": "bronze.pagila__sales", "rows": [sale]})

    def edit(self, file: str, old: str, new: str) -> None:
        path = str(self.project / file)
        self.steps.append({"replace": {"file": path, "old": old, "new": new}})

    def compare(self, name: str, schema: str = "marts") -> None:
        """The rows that are not those of a build from nothing."""
        for made in ("whole_marts", "whole_state"):
            for table in (SALES, WINDOWS, "read_points", "touched_days"):
                self.sql(f"drop table if exists {made}.{table}")
        self.steps.append({"dbt": [*ALL, "--target", "whole"], "target": "whole"})
        for mart in (SALES, WINDOWS):
            self.differences(f"{name}, {mart} compared", mart, schema, "whole_marts")

    def differences(self, name: str, mart: str, one: str, other: str) -> None:
        self.add(
            name,
            sql=" union all ".join(
                f"(select * from {left}.{mart} except all select * from {right}.{mart})"
                for left, right in [(one, other), (other, one)]
            ),
        )

    def stop(self, name: str, words: list[str], schema: str = "marts") -> None:
        """A build that stops, the command that it names, and what came of it."""
        self.add(name, dbt=words)
        self.mend(name)
        self.compare(name, schema)

    def mend(self, name: str) -> None:
        """What a message names, typed as it is printed, with the tests of what it builds."""
        self.add(f"{name}, mended", **{"as reported by": self.names[name], "words": []})

    def recreated(self, uuid: str) -> None:
        """Ingest shows that the table that stands there now is another one."""
        self.sql(
            f"insert into {LOG} (table_name, commit_id, kafka_topic, kafka_topic_id,"
            " offsets, row_count, quarantined_count, committed_at, kind, table_uuid)"
            " values ('bronze.pagila__sales', 0, 'pagila.sales.avro', 'first', array(),"
            f" 0, 0, current_timestamp(), 'table', '{uuid}')"
        )


def one_target(stops: Stops) -> None:
    """What changes under marts that somebody builds again and again."""
    for flags in (["--empty"], ["--full-refresh", "--empty"], ["--sample", "3 days"]):
        stops.add(" ".join(flags), dbt=[*RUN, *flags])
    stops.load()

    stops.steps.append(
        {
            "append": {
                "file": str(stops.project / "seeds/sales_regions.csv"),
                "text": "Nowhere,Europe\n",
            }
        }
    )
    stops.stop("seed", ALL)

    view = f"models/intermediate/rentals/{VIEW}.sql"
    macro = "macros/streams/trimmed_text.sql"
    stops.edit(view, "-- A country that", "-- Cosmetics: a country that")
    stops.edit(view, "        city,\n", "        city, -- Cosmetics.\n\n")
    stops.edit(macro, "{% macro", "{#- Cosmetics. #}{% macro")
    stops.load()
    stops.add("cosmetics", dbt=RUN)
    stops.edit(view, "        city, -- Cosmetics.\n\n", "        upper(city) as city,\n")
    stops.add("view", dbt=RUN)
    trimmed = "rtrim({{ column }})"
    stops.edit(macro, trimmed, f"replace({trimmed}, 'Brazil', 'Peru')")
    stops.stop("macro", RUN)
    stops.edit(f"models/marts/rentals/{SALES}.sql", "ranked_in_partition", "placed")
    stops.add("accepted", dbt=[*RUN, "--vars", "{accept_changed_code: true}"])
    stops.load()
    stops.add("went on", dbt=RUN)
    stops.compare("went on")

    # The view is built from an edit, and the edit is taken back.
    stops.edit(view, "        upper(city) as city,\n", "        lower(city) as city,\n")
    stops.add("view alone", dbt=["run", "--select", VIEW])
    stops.edit(view, "        lower(city) as city,\n", "        upper(city) as city,\n")
    stops.stop("taken back", RUN)
    # As an older version leaves its views, and what it records of facts.
    code = "tblproperties ('millrace.code')"
    stops.sql(f"alter view intermediate.{VIEW} unset {code}")
    stops.load()
    stops.stop("unknown view", RUN)

    stops.recreated("first-table")
    stops.add("filled in", dbt=RUN)
    # What nobody knew is known now, of the stream and of nothing else.
    stops.add(
        "filled in, compared",
        sql="select * from state.read_points where (source_name = 'pagila.sales')"
        " <> coalesce(table_uuid = 'first-table', false)",
    )
    # As ingest says it of a table that was rolled back; it has come further since.
    stops.sql(f"update {LOG} set committed_at = now() where kind = 'table'")
    stops.load()
    stops.stop("grown again", RUN)
    stops.sql("delete from bronze.pagila__sales where _commit_id > 2")
    stops.add("rolled back", dbt=RUN)
    for _ in range(8):
        stops.load()
    stops.recreated("second-table")
    stops.stop("recreated", RUN)


def by_itself(stops: Stops) -> None:
    """Commands that each build a part, and a lake that an older version built."""
    stops.add("fact alone", dbt=["run", "--select", SALES])
    stops.mend("fact alone")
    stops.add("seed alone", dbt=["seed"])
    stops.add("views alone", dbt=["run", "--select", "staging", "intermediate"])
    stops.add("all models", dbt=["run"])
    stops.load()
    stops.add("one fact", dbt=["run", "--select", SALES])
    stops.add("another fact", dbt=["run", "--select", WINDOWS])
    stops.compare("another fact")
    stops.sql("update state.read_points set code = '{}'")
    stops.load()
    stops.stop("older version", RUN)


def other_targets(stops: Stops) -> None:
    """Targets that read each other's marts, runs beside each other, and one that fails."""
    stops.add("artifacts", dbt=["parse"], target="state")
    defer = ["--defer", "--state", str(stops.state)]
    stops.add("defer", dbt=["run", "--select", WINDOWS, *defer, *OWN])
    stops.load()
    stops.add("below", dbt=EVERYTHING)
    stops.add("defer again", dbt=["run", "--select", WINDOWS, *defer, *OWN])
    stops.mend("defer again")
    stops.differences("defer again, compared", WINDOWS, "marts", "ada_marts")
    stops.add("clone", dbt=["clone", "--select", SALES, "--state", str(stops.state), *OWN])
    stops.mend("clone")
    stops.differences("clone, compared", SALES, "marts", "ada_marts")

    # Two runs at once: the first writes after the second has ended, and dies then.
    stops.sell(7001)
    stops.sql("create table state.kept as select * from state.read_points")
    stops.add("first of two", dbt=["run", "--select", SALES])
    stops.sql(f"create table state.rows as select * from marts.{SALES}")
    stops.sql("insert overwrite state.read_points select * from state.kept")
    stops.sell(7002)
    stops.add("second of two", dbt=["run", "--select", SALES])
    stops.sql(f"insert overwrite marts.{SALES} select * from state.rows")
    stops.add("after the two", dbt=RUN)
    stops.compare("after the two")

    stops.load()
    broken = f"alter table marts.{WINDOWS}"
    stops.sql(f"{broken} set tblproperties ('write.format.default' = 'none')")
    stops.add("broken", dbt=RUN)
    stops.sql(f"{broken} unset tblproperties ('write.format.default')")
    stops.load()
    stops.add("retry", dbt=["retry"])
    stops.add("after the retry", dbt=RUN)
    stops.compare("after the retry")


MESSAGES = {
    "--empty": "--empty would leave rows out",
    "--full-refresh --empty": "--empty would leave rows out",
    "--sample 3 days": "--sample would leave rows out",
    "seed": "was built from other code of sales_regions: ",
    "view": f"was built from other code of {VIEW}: ",
    "macro": f"was built from other code of {VIEW}, stg_pagila__sales: ",
    "taken back": f"reads {VIEW}, built from other code than the project has: run `dbt run",
    "unknown view": f"reads {VIEW}, built from other code than the project has: run ",
    "fact alone": f"sales_regions, {VIEW}, not built yet: run `dbt build --select +",
    "older version": "was built by an older version",
    "grown again": "bronze.pagila__sales was rolled back to an earlier commit since",
    "rolled back": "bronze.pagila__sales ends with commit 2",
    "recreated": "bronze.pagila__sales was recreated (second-table)",
    "defer again": f"was built from other code of {SALES}",
    "clone": "`dbt clone` does not copy the read points of marts",
    "broken": WINDOWS,
}


@pytest.fixture(scope="module", params=[one_target, by_itself, other_targets])
def found(
    request: pytest.FixtureRequest, home: Home, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp(request.param.__name__)
    project = copy_project(folder / "project")
    with (project / "profiles/profiles.yml").open("a") as profiles:
        profiles.write(ADA + ADA.replace("ada", "whole"))
    stops = Stops(project, folder.resolve() / "sand box/out/state")
    stops.load()
    if request.param is not by_itself:
        stops.add("first", dbt=EVERYTHING)
    request.param(stops)
    results = do_steps(folder, stops.steps, project)
    return {name: results[at] for name, at in stops.names.items()}


def test_what_would_mix_rows_stops(found: dict[str, Any]) -> None:
    stopped = {step: found[step] for step in MESSAGES if step in found}

    assert len(stopped) > 1
    for step, done in stopped.items():
        assert not done["success"], step
        assert MESSAGES[step] in done["said"]


def test_what_is_named_mends_it(found: dict[str, Any]) -> None:
    failed = {
        step: done["said"]
        for step, done in found.items()
        if isinstance(done, dict) and step not in MESSAGES and not done["success"]
    }

    assert failed == {}


def test_all_ends_as_a_full_refresh(found: dict[str, Any]) -> None:
    compared = {step: done for step, done in found.items() if "compared" in step}

    assert len(compared) > 3
    assert {step: rows for step, rows in compared.items() if rows} == {}
