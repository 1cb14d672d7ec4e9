"""What would mix rows stops, and the command that it names, typed as printed, mends it.

Each time the marts end as a build of all of them in other schemas, made anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.increments_records import DAYS, Records
from tests.python.spark.lake_steps import do_steps

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
        self.add(f"{name}, mended", **{"as told by": self.names[name], "words": []})

    def made_anew(self, uuid: str) -> None:
        """Ingest tells that the table that stands there now is another one."""
        self.sql(
            f"insert into {LOG} (table_name, commit_id, kafka_topic, kafka_topic_id,"
            " offsets, row_count, quarantined_count, committed_at, kind, table_uuid)"
            " values ('bronze.pagila__sales', 0, 'pagila.sales.avro', 'first', array(),"
            f" 0, 0, current_timestamp(), 'table', '{uuid}')"
        )


def history(stops: Stops) -> None:
    stops.load()
    stops.add("first", dbt=EVERYTHING)
    stops.load()

    for flags in (["--empty"], ["--full-refresh", "--empty"], ["--sample", "3 days"]):
        stops.add(" ".join(flags), dbt=[*RUN, *flags])
    stops.add("after the flags", dbt=ALL)
    stops.compare("after the flags")

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
    stops.edit(view, "-- A country that", "-- Cosmetics: a country that")
    stops.load()
    stops.add("cosmetics", dbt=RUN)
    stops.edit(view, "        city,\n", "        upper(city) as city,\n")
    stops.stop("view", RUN)

    macro = "macros/streams/trimmed_text.sql"
    stops.edit(macro, "{% macro", "{#- Cosmetics. #}{% macro")
    stops.add("comment in a macro", dbt=RUN)
    trimmed = "rtrim({{ column }})"
    stops.edit(macro, trimmed, f"replace({trimmed}, 'Brazil', 'Peru')")
    stops.stop("macro", RUN)
    stops.edit(f"models/marts/rentals/{WINDOWS}.sql", "count(*)", "count(1)")
    stops.add("accepted", dbt=[*RUN, "--vars", "{accept_changed_code: true}"])
    stops.load()
    stops.add("went on", dbt=RUN)
    stops.compare("went on")

    stops.made_anew("first-table")
    stops.add("filled in", dbt=RUN)
    stops.add("uuids", sql="select distinct table_uuid from state.read_points")
    stops.sql(
        "create table bronze.old using iceberg as select * from bronze.pagila__sales"
    )
    stops.sql("delete from bronze.pagila__sales")
    for _ in range(8):
        stops.load()
    stops.made_anew("second-table")
    stops.stop("made anew", RUN)
    stops.sql("delete from bronze.pagila__sales where _commit_id > 2")
    stops.stop("set back", RUN)

    stops.add("before the others", dbt=EVERYTHING)
    stops.add("artifacts", dbt=["parse"], target="state")
    defer = ["--defer", "--state", str(stops.state)]
    stops.add("defer", dbt=["run", "--select", WINDOWS, *defer, *OWN])
    stops.load()
    stops.add("below", dbt=EVERYTHING)
    stops.add("defer again", dbt=["run", "--select", WINDOWS, *defer, *OWN])
    stops.mend("defer again")
    stops.differences("defer again, compared", WINDOWS, "marts", "ada_marts")
    stops.add(
        "clone", dbt=["clone", "--select", SALES, "--state", str(stops.state), *OWN]
    )
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
    stops.add("broken", dbt=ALL)
    stops.sql(f"{broken} unset tblproperties ('write.format.default')")
    stops.load()
    stops.add("retry", dbt=["retry"])
    stops.add("after the retry", dbt=ALL)
    stops.compare("after the retry")


@pytest.fixture(scope="module")
def found(home: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("stops")
    project = copy_project(folder / "project")
    with (project / "profiles/profiles.yml").open("a") as profiles:
        profiles.write(ADA + ADA.replace("ada", "whole"))
    stops = Stops(project, folder.resolve() / "sand box/out/state")
    history(stops)
    results = do_steps(folder, stops.steps, project)
    return {name: results[at] for name, at in stops.names.items()}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("--empty", "--empty would leave rows out"),
        ("--full-refresh --empty", "--empty would leave rows out"),
        ("--sample 3 days", "--sample would leave rows out"),
        ("seed", "was built with "),
        ("view", f"was built with other code of {VIEW}"),
        ("macro", "was built with other code of stg_pagila__sales"),
        ("made anew", "bronze.pagila__sales was made anew (second-table)"),
        ("set back", "bronze.pagila__sales ends with commit 2"),
        ("defer again", f"was built with other code of {SALES}"),
        ("clone", "`dbt clone` does not copy what a mart has read"),
        ("broken", WINDOWS),
    ],
)
def test_what_would_mix_rows_stops(
    found: dict[str, Any], step: str, message: str
) -> None:
    assert not found[step]["success"]
    assert message in found[step]["said"]


@pytest.mark.parametrize(
    "step",
    [
        "first",
        "after the flags",
        "seed, mended",
        "cosmetics",
        "view, mended",
        "comment in a macro",
        "macro, mended",
        "accepted",
        "went on",
        "filled in",
        "made anew, mended",
        "set back, mended",
        "defer",
        "defer again, mended",
        "clone, mended",
        "first of two",
        "second of two",
        "after the two",
        "retry",
        "after the retry",
    ],
)
def test_what_is_named_mends_it(found: dict[str, Any], step: str) -> None:
    assert found[step]["success"], found[step]["said"]


def test_all_ends_as_a_full_refresh(found: dict[str, Any]) -> None:
    compared = [name for name in found if name.endswith("compared")]

    assert len(compared) > 12
    for name in compared:
        assert found[name] == [], name


def test_a_uuid_that_nobody_knew_is_filled_in(found: dict[str, Any]) -> None:
    assert sorted(found["uuids"]) == [["first-table"], ["∅"]]
