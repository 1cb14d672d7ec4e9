"""A copy of the project with an incremental model of a feed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.python.project_copy import copy_project
from tests.python.stack.conftest import Feed, dbt_here

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
{{{{ new_and_existing_rows(increment, ref("stg_test__orders"), "{stream}") }}}}
"""


@dataclass
class Keeper:
    """A project with an incremental model of the feed, and its lake."""

    feed: Feed
    project: Path

    def dbt(self, *words: str) -> dict[str, Any]:
        feed = self.feed
        where = (self.project, self.project)
        return dbt_here(feed.stack, feed.services.spark, *where, *words)

    def ids(self) -> list[int]:
        """The orders that the model has, with repetitions."""
        rows = self.feed.services.spark.table("lake.marts.fct_orders")
        return sorted(row[0] for row in rows.select("id").collect())


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
