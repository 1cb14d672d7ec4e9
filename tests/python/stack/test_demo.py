"""The demo whole, on services that run already.

Fails when `sandbox demo` miscounts a record or leaves out a model or a column, or a topic a row.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.settings import PROJECT
from sandbox.streams import STREAMS
from sandbox.tour import exclusions
from spark_ingest.publish.publications import read_publications
from spark_ingest.sources import target_folder
from tests.python.conftest import Stack
from tests.python.stack.conftest import DemoRun, command_here, dbt_here
from tests.python.stack.published import last_rows, mart_rows, sent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = [
    "demo.purchases.enriched",
    "demo.running.totals",
    "pagila.sales.by_country",
    "pagila.sales.summary.avro",
]
# Of 2,000 events half go to each source.
EVENTS = {"produced": 1000, "bronze": 990, "quarantine": 10, "missing": 0, "doubled": 0}


def test_the_demo_accounts_for_every_event_and_leaves_what_it_found(
    stack: Stack, spark: SparkSession, demo: DemoRun
) -> None:
    head, *lines = [
        line.split()
        for line in demo.report.splitlines()
        if re.match(r"  \S+( +[\d,]+){5}$|  stream ", line)
    ]
    numbers = {
        stream: dict(zip(head[1:], (int(text.replace(",", "")) for text in texts), strict=True))
        for stream, *texts in lines
    }
    assert numbers["pagila.sales"] == numbers["smoothies.purchases"] == EVENTS
    assert numbers["smoothies.products"]["bronze"] == 27
    assert numbers["smoothies.inventories"]["bronze"] > 0
    streams = [numbers[name] for name in STREAMS]
    assert numbers["all"] == {what: sum(stream[what] for stream in streams) for what in EVENTS}
    manifest = json.loads((demo.site / "manifest.json").read_text())
    # Nothing was captured on this stack.
    captured = exclusions.unfilled(manifest, lambda _table: False)
    built = exclusions.built(manifest, captured)
    assert (
        f"dbt: {built['model']} models, 1 seed, {built['test']} data tests: all good" in demo.report
    )
    assert exclusions.summary(manifest, captured) in demo.report
    for title in ("largest regional sales windows", "products that sold most"):
        after = demo.report.partition(title)[2].splitlines()
        # A heading, its line, and the five rows.
        assert all(re.search(r"\d\.\d\d ", row) for row in after[3:8]), title
    assert "Done in" in demo.report
    assert stack.run("sandbox", "status").returncode == 0
    proof = command_here(stack, demo.site / "manifest.json", "verify", "pagila").stdout
    assert "all 1,000 records are in exactly one table, exactly once" in proof


def test_the_catalogue_has_every_built_model_and_column_with_type_and_description(
    stack: Stack, demo: DemoRun
) -> None:
    log = (stack.home.logs / "demo-spark.log").read_text()
    # Java's own line, where no start-up file takes it out: the home's path has a blank.
    said = log.replace("WARNING: Using incubator modules", "").lower()
    assert "catalog written" in said
    assert "warn" not in said.replace(" warn=0 ", "")
    assert "deprecat" not in said
    catalogue = json.loads((demo.site / "catalog.json").read_text())
    manifest = json.loads((demo.site / "manifest.json").read_text())
    found = {**catalogue["nodes"], **catalogue["sources"]}
    described = {
        name: node
        for name, node in {**manifest["nodes"], **manifest["sources"]}.items()
        if node["resource_type"] in {"model", "seed", "source"}
    }
    captured = exclusions.unfilled(manifest, lambda _table: False)
    assert found.keys() == described.keys() - exclusions.readers(manifest, captured)
    for name in found:
        node = described[name]
        assert node["description"], name
        assert list(found[name]["columns"]) == list(node["columns"]), name
        for column in found[name]["columns"].values():
            assert column["type"], (name, column["name"])
            assert node["columns"][column["name"]]["description"], (name, column["name"])


def test_the_topics_hold_what_the_marts_hold(
    stack: Stack, spark: SparkSession, demo: DemoRun
) -> None:
    manifest = demo.site / "manifest.json"
    done = command_here(stack, manifest, "publish", "--once")
    assert done.exit_code == 0, f"{done.output}{done.exception}"

    def in_order(rows: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
        return sorted((sorted(row.items()) for row in rows), key=str)

    found = {each.topic: each for each in read_publications(manifest)}
    assert sorted(found) == TOPICS
    for topic, publication in found.items():
        # Those that ingest adds stay in the lake.
        columns = [column.name for column in publication.columns]
        rows = mart_rows(spark.table(publication.mart), *columns)
        assert rows
        assert in_order(last_rows(sent(stack.home, topic))) == in_order(rows), topic


@pytest.mark.nightly
def test_the_tests_of_code_that_the_demo_leaves_out_hold(
    stack: Stack, spark: SparkSession, demo: DemoRun
) -> None:
    manifest = json.loads((demo.site / "manifest.json").read_text())
    captured = exclusions.unfilled(manifest, lambda _table: False)
    unbuilt = exclusions.readers(manifest, captured)
    macros = exclusions.macro_tests(manifest)
    names = sorted(manifest["nodes"][name]["name"] for name in macros)

    ran = passed(
        *(stack, spark, "test", "--select", "test_type:unit", *names),
        *exclusions.excluded(captured),
    )

    of_built = {
        name
        for name, test in manifest["unit_tests"].items()
        if not unbuilt.intersection(test["depends_on"]["nodes"])
    }
    assert len(of_built) > len(manifest["unit_tests"]) / 2
    # Hooks run as well.
    assert ran >= macros | of_built


@pytest.mark.nightly
def test_the_models_that_the_demo_leaves_out_can_be_built(
    stack: Stack, spark: SparkSession, demo: DemoRun
) -> None:
    manifest = json.loads((demo.site / "manifest.json").read_text())
    captured = exclusions.unfilled(manifest, lambda _table: False)

    ran = passed(stack, spark, "build", "--select", *(f"source:{name}+" for name in captured))

    assert ran >= {
        name
        for name in exclusions.readers(manifest, captured)
        if name.startswith(("model.", "test."))
    }


def passed(stack: Stack, spark: SparkSession, *words: str) -> set[str]:
    """What a command of dbt, which must succeed, ran."""
    target = target_folder(PROJECT)
    done = dbt_here(stack, spark, PROJECT, target.parent, *words)
    assert done["success"], done["said"]
    results = json.loads((target / "run_results.json").read_text())
    return {
        node["unique_id"] for node in results["results"] if node["status"] in {"pass", "success"}
    }
