"""A commit id that is there twice in a lake: `verify` names it, and the runbook mends it.

Fails when a step of docs/runbooks/commit-twice.md fails as it is written, or rows stay out of a
model behind it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import Result

from sandbox.settings import PROJECT
from spark_ingest.errors import ConfigurationError
from spark_ingest.quarantine.choice import Choice
from spark_ingest.quarantine.replay import replay
from spark_ingest.streaming.table_position import standing
from tests.python.project_copy import copy_project
from tests.python.stack.conftest import ORDER, Feed, commands, dbt_here, orders
from tests.python.stack.test_quarantine import TAGGED, ingest_without, tagged
from tests.python.stack.test_recover import forget_own_snapshots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.sources import Stream
    from spark_ingest.streaming.table_position import Position

RUNBOOK = PROJECT / "docs" / "runbooks" / "commit-twice.md"
COLUMNS = ("id", "_kafka_timestamp", "_commit_id")
LISTED = "".join(f"\n      - name: {name}" for name in COLUMNS)
SOURCE = """
sources:
  - name: test
    schema: bronze
    tables:
      - name: {name}
        identifier: {identifier}
        config: {{meta: {{ingest: {{topic: {topic}}}}}}}
"""
MODELS = f"""
models:
  - name: stg_test__orders
    columns:{LISTED}
  - name: fct_orders
    columns:{LISTED}
"""
STAGED = "select {columns} from {{{{ source('test', '{name}') }}}}"
FACT = """
{{{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(_kafka_timestamp)",
    contract={{"enforced": false}},
) }}}}
{{% set increment = begin_increment(time_column="_kafka_timestamp") %}}
{{{{ new_and_kept_rows(increment, ref("stg_test__orders"), "{stream}") }}}}
"""


@dataclass
class Keeper:
    """A project with an incremental model of the feed, and its lake."""

    feed: Feed
    project: Path

    def type(self, command: str) -> Result | dict[str, Any]:
        """Run a command of the runbook, for the feed instead of pagila."""
        program, *words = shlex.split(command.replace("pagila", self.feed.stream.name))
        if program == "dbt":
            return self.dbt(*words)
        assert program == "spark-ingest"
        return self.feed.command(*words)

    def dbt(self, *words: str) -> dict[str, Any]:
        feed = self.feed
        where = (self.project, self.project)
        return dbt_here(feed.stack, feed.services.spark, *where, *words)

    def ids(self) -> list[int]:
        """The orders that the model has, with repetitions."""
        rows = self.feed.services.spark.table("lake.marts.fct_orders")
        return sorted(row[0] for row in rows.select("id").collect())


@pytest.fixture
def keeper(feed: Feed, tmp_path: Path) -> Keeper:
    """A copy of the project that knows the feed alone beside its own streams."""
    return keeper_of(feed, tmp_path)


def keeper_of(feed: Feed, folder: Path) -> Keeper:
    """A model of a feed, in a copy of the project in a folder."""
    project = copy_project(folder / "project")
    name = feed.stream.name.partition(".")[2]
    identifier = feed.stream.table.partition(".")[2]
    staging, marts = (project / "models" / of / "test" for of in ("staging", "marts"))
    staging.mkdir()
    marts.mkdir()
    source = SOURCE.format(name=name, identifier=identifier, topic=feed.topic)
    (staging / "_test__sources.yml").write_text(source)
    staged = STAGED.format(columns=", ".join(COLUMNS), name=name)
    (staging / "stg_test__orders.sql").write_text(staged)
    (marts / "fct_orders.sql").write_text(FACT.format(stream=feed.stream.name))
    (marts / "fct_orders.yml").write_text(MODELS)
    return Keeper(feed, project)


def replay_with_the_newest_id(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that chose its id before the stream's commit and is published behind it.

    As in an earlier version, which compared no ids when it published.
    """

    def before(spark: SparkSession, stream: Stream) -> Position:
        here = standing(spark, stream)
        return replace(here, commit_id=here.commit_id - 1)

    with monkeypatch.context() as patch:
        patch.setattr("spark_ingest.streaming.side_commit.standing", before)
        patch.setattr("spark_ingest.lake.branch.check_number", lambda *_: None)
        assert replay(feed.services, feed.stream, Choice()).taken == 1


@pytest.mark.nightly
def test_the_runbook_brings_a_model_the_rows_that_it_passed_over(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = keeper.feed
    number, coming = feed.register(ORDER), feed.register(TAGGED)
    feed.send(*orders(number, 0, 2), *tagged(coming, 7))
    ingest_without(feed, coming, monkeypatch)
    feed.send(*orders(number, 2, 3))
    feed.ingest()
    select = ("--select", f"source:{feed.stream.name}+", "+rpt_ingest_ledger")
    only = ("--exclude", "test_type:generic", "--exclude-resource-type", "unit_test")
    built = keeper.dbt("build", *select, *only)
    assert built["success"], built["said"]
    replay_with_the_newest_id(feed, monkeypatch)
    assert keeper.dbt("run", "--select", "fct_orders")["success"]
    # Bronze has order 7 in commit 2, which the model has read.
    assert keeper.ids() == [0, 1, 2, 3, 4]
    assert len(feed.offsets()) == 6
    forget_own_snapshots(feed)

    (check,) = commands(RUNBOOK, "How to know that it is over")
    found = keeper.type(check)
    dry, done, rebuild = commands(RUNBOOK, "What to type")

    assert isinstance(found, Result)
    assert found.exit_code == 1
    assert f"{feed.stream.table} has commit 2 twice: 3 rows of " in found.stderr
    assert "(stream) and 1 rows of " in found.stderr
    assert "(replay): dbt may" in found.stderr
    assert f"docs/runbooks/{RUNBOOK.name}" in found.stderr
    tried, unasked = keeper.type(dry), keeper.type(done)
    assert isinstance(tried, Result)
    assert isinstance(unasked, Result)
    assert tried.exit_code == 0, tried.output
    assert isinstance(unasked.exception, ConfigurationError)
    assert [row["commit_id"] for row in feed.log().collect()] == [1, 2]
    mended = keeper.type(f"{done} --yes")
    assert isinstance(mended, Result)
    assert mended.exit_code == 0, mended.output
    assert "rows of commit 2 are commit 3 now" in mended.stdout
    stopped = keeper.dbt("run", "--select", "fct_orders")
    assert not stopped["success"]
    assert "rows of it got another commit id" in str(stopped["said"])
    rebuilt = keeper.type(rebuild)
    assert isinstance(rebuilt, dict)
    assert rebuilt["success"], rebuilt["said"]
    assert keeper.ids() == [0, 1, 2, 3, 4, 7]
    held = keeper.type(check)
    assert isinstance(held, Result)
    assert held.exit_code == 0, held.output
    again = keeper.type(f"{done} --yes")
    assert isinstance(again, Result)
    assert "no commit id is there twice" in again.stdout
    assert [(row["commit_id"], row["kind"]) for row in feed.log().collect()] == [
        (1, "stream"), (2, "stream"), (3, "replay"),
    ]  # fmt: skip
    # The stream goes on behind it, and dbt with it.
    feed.send(*orders(number, 8, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (4, 1)
    assert keeper.dbt("run", "--select", "fct_orders")["success"]
    assert keeper.ids() == [0, 1, 2, 3, 4, 7, 8]
