"""The demo whole, on services that run already.

Fails when `sandbox demo` miscounts a record, or leaves out a model or a column of the docs.
"""

from __future__ import annotations

import json
import re

from sandbox.streams import STREAMS
from tests.python.conftest import Stack
from tests.python.stack.conftest import DemoRun

# Of 2,000 events half go to each source.
EVENTS = {
    "produced": 1000,
    "bronze": 990,
    "quarantine": 10,
    "missing": 0,
    "doubled": 0,
}


def test_the_demo_accounts_for_every_event_and_leaves_what_it_found(
    stack: Stack, demo: DemoRun
) -> None:
    head, *lines = [
        line.split()
        for line in demo.report.splitlines()
        if re.match(r"  \S+( +[\d,]+){5}$|  stream ", line)
    ]
    numbers = {
        stream: dict(
            zip(head[1:], (int(text.replace(",", "")) for text in texts), strict=True)
        )
        for stream, *texts in lines
    }
    assert numbers["pagila.sales"] == numbers["smoothies.purchases"] == EVENTS
    assert numbers["smoothies.products"]["bronze"] == 27
    assert numbers["smoothies.inventories"]["bronze"] > 0
    streams = [numbers[name] for name in STREAMS]
    assert numbers["all"] == {
        what: sum(stream[what] for stream in streams) for what in EVENTS
    }
    assert re.search(
        r"dbt: \d+ models, 1 seed, \d+ data tests, \d+ unit tests: all good",
        demo.report,
    )
    for title in ("largest regional sales windows", "products that sold most"):
        after = demo.report.partition(title)[2].splitlines()
        # A heading, its line, and the five rows.
        assert all(re.search(r"\d\.\d\d ", row) for row in after[3:8]), title
    assert "Done in" in demo.report
    assert stack.run("sandbox", "status").returncode == 0
    proof = stack.run("spark-ingest", "verify", "pagila").stdout
    assert "every one of 1,000 records is in exactly one table, exactly once" in proof


def test_the_catalogue_has_every_model_and_column_with_type_and_description(
    stack: Stack, demo: DemoRun
) -> None:
    log = (stack.home.logs / "demo-dbt-docs.log").read_text()
    # Java's own line, where no start-up file takes it out: the home's path has a blank.
    said = log.replace("WARNING: Using incubator modules", "").lower()
    assert "catalog written" in said
    assert "warn" not in said
    assert "deprecat" not in said
    catalogue = json.loads((demo.site / "catalog.json").read_text())
    manifest = json.loads((demo.site / "manifest.json").read_text())
    found = {**catalogue["nodes"], **catalogue["sources"]}
    described = {
        name: node
        for name, node in {**manifest["nodes"], **manifest["sources"]}.items()
        if node["resource_type"] in {"model", "seed", "source"}
    }
    assert found.keys() == described.keys()
    for name, node in described.items():
        assert node["description"], name
        assert list(found[name]["columns"]) == list(node["columns"]), name
        for column in found[name]["columns"].values():
            assert column["type"], (name, column["name"])
            assert node["columns"][column["name"]]["description"], (
                name,
                column["name"],
            )
