"""Put unportable constructs into models, and see which layer catches each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.services.redshift.refusals import NotRedshift, Page, check
from sandbox.settings import Home
from tests.python.mutations.planting import entries
from tests.python.parity.compare import compare
from tests.python.parity.records import SALES, Step
from tests.python.parity.relations import Cell, Relation, from_spark, load
from tests.python.parity.trial import (
    ENGINES,
    BuildFailed,
    external_schema,
    read_standin,
    standin,
    standin_dbt,
    targets,
)
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import run_steps
from tests.python.world.kafka import Row
from tests.python.world.records import Records

SCHEMA = "mutants"
RENDER, STANDIN, CELLS = "refused in render", "refused by the emulator", "differs"
_SELECT = ["--select", f"+path:models/{SCHEMA}"]
_FROM = {
    "staging": ("{{ ref('stg_pagila__sales') }}", "sales.record_key"),
    "source": ("{{ source('pagila', 'sales') }}", "sales.payment_id"),
}


@dataclass(frozen=True)
class Mutant:
    """A construct, as `mutations.yml` has it; its comments say what the keys are."""

    file: str
    why: str
    old: str
    new: str
    redshift: str
    page: Page
    of: str = "staging"
    by: str | None = None
    old_by: str | None = None
    where: str = ""
    column: str = "found"
    spark: str | None = None


@dataclass(frozen=True)
class Caught:
    """What became of a mutant, or of a control.

    Attributes:
        layer: The first that caught it; nothing when none did.
        spark: What Spark makes of it, by example; nothing when it does not build there.
        standin: What the emulator makes of it, or its words.
    """

    layer: str | None
    spark: str | None
    standin: str


@dataclass(frozen=True)
class Mutation:
    """What became of all mutants, and of the models that hold what is written instead."""

    mutants: dict[str, Caught]
    controls: dict[str, Caught]


def mutants() -> list[Mutant]:
    """All of the file, in its order."""
    return [Mutant(**{**said, "page": Page(**said["page"])}) for said in entries("portability")]


def model(of: str, by: str | None, columns: Mapping[str, str], where: str = "") -> str:
    """A model of the sales, by row or by group."""
    relation, key = _FROM[of]
    selected = "".join(f",\n    {value} as {name}" for name, value in columns.items())
    return (
        f"{{{{ config(materialized='table', schema='{SCHEMA}') }}}}\n\n"
        f"select\n    {by or key} as row_key{selected}\nfrom {relation} as sales\n"
        + (f"where {where}\n" if where else "")
        + (f"group by {by}\n" if by else "")
    )


def models() -> dict[str, str]:
    """The mutants' models by name, and the controls': what is written instead of each."""
    found = {
        mutant.file: model(mutant.of, mutant.by, {mutant.column: mutant.new}, mutant.where)
        for mutant in mutants()
    }
    controls: dict[tuple[str, str | None], dict[str, str]] = defaultdict(dict)
    for mutant in mutants():
        columns = controls[mutant.of, mutant.old_by or mutant.by]
        columns[mutant.file] = mutant.old
    for number, ((of, by), columns) in enumerate(controls.items(), start=1):
        found[f"control_{number}"] = model(of, by, columns)
    return found


def sales() -> list[Row]:
    """Rows in which each construct differs from its replacement."""
    records = Records(seed=3)
    rows = [
        # amount, city, country, paid at, sent at
        ("0.30", "Lyon", "Japan", "2026-01-31 23:00:00", "2026-02-01 01:00:00"),
        ("1.14", "Lyon ", "Japan", "2026-01-04 00:00:00", "2026-01-04 00:00:01"),
        ("2.50", "Zürich", "Brazil", "2026-01-02 12:00:00", "2026-03-01 00:00:00"),
        ("3.50", "São Paulo", "Brazil", "2026-01-03 12:00:00", "2026-01-03 12:00:00"),
        ("2.70", "Zürich  ", None, "2025-12-31 23:59:59", "2026-01-01 00:00:00"),
        ("7.00", None, None, "2026-01-05 06:00:00", "2026-01-05 06:00:00.5"),
        ("-2.50", "Oslo", "Brazil", "2026-01-06 06:00:00", "2026-01-06 06:00:00"),
    ]
    return [
        records.sale(
            number,
            paid_at,
            sent_at=sent_at,
            amount=amount,
            city=city,
            country=country,
            district="2026-01-01 12:00:00+02:00",
        )
        for number, (amount, city, country, paid_at, sent_at) in enumerate(rows, 1)
    ]


def run_mutants(home: Home) -> Mutation:
    """Build all mutants and controls on both engines, in a copy of the project.

    Args:
        home: A new sandbox on free ports.

    Raises:
        BuildFailed: dbt did not come as far as the models.
        StepsFailed: The lake's program died.
    """
    project = copy_project(home.path / "project")
    folder = project / "models" / SCHEMA
    folder.mkdir()
    for name, text in models().items():
        (folder / f"{name}.sql").write_text(text)
    names, read = [f"{SCHEMA}.{name}" for name in models()], home.path / "read.json"
    steps: list[Step] = [
        {"commit": SALES, "rows": sales()},
        {
            "together": [
                {"dbt": ["run", *_SELECT]},
                {"in order": [external_schema(home, project), _build(home, project)]},
            ]
        },
        {"together": [{"read": names}, read_standin(home, names, read)]},
    ]
    with standin(home):
        results = run_steps(home, steps, project)
    built = results[-2]
    if not (read.exists() and (targets(home)[ENGINES[1]] / "run_results.json").exists()):
        raise BuildFailed(f"dbt failed:\n{built[0]['said']}\n{built[1][-1]['said']}")
    if not results[-1][1]["success"]:
        raise BuildFailed(f"the emulator cannot be read:\n{results[-1][1]['said']}")
    spark = {name: from_spark(found) for name, found in results[-1][0].items()}
    theirs, said = load(read), _said(home)
    compiled = targets(home)[ENGINES[1]] / "compiled/millrace/models" / SCHEMA
    caught = {
        name: caught_by(
            (compiled / f"{name}.sql").read_text(),
            spark.get(f"{SCHEMA}.{name}"),
            theirs.get(f"{SCHEMA}.{name}"),
            said.get(name, ""),
        )
        for name in models()
    }
    named = {mutant.file for mutant in mutants()}
    return Mutation(
        {name: found for name, found in caught.items() if name in named},
        {name: found for name, found in caught.items() if name not in named},
    )


def _build(home: Home, project: Path) -> Step:
    return standin_dbt(home, "run", *_SELECT, project=project)


def _said(home: Home) -> dict[str, str]:
    """Of each model that the emulator did not build, why."""
    results: list[dict[str, Any]] = json.loads(
        (targets(home)[ENGINES[1]] / "run_results.json").read_text()
    )["results"]
    return {
        node["unique_id"].rpartition(".")[2]: _words(node["message"])
        for node in results
        if node["status"] != "success"
    }


def _words(message: str) -> str:
    """The engine's own words, without where dbt has kept the statement."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines[1:] if line), message)


def caught_by(text: str, spark: Relation | None, theirs: Relation | None, said: str) -> Caught:
    """The layers in the order in which a change meets them."""
    here, there = _examples(spark, theirs)
    try:
        check(text)
    except NotRedshift as refused:
        return Caught(RENDER, here, str(refused))
    if theirs is None:
        return Caught(STANDIN, here, said)
    differs = compare(spark, theirs, ["row_key"])
    return Caught(CELLS if differs else None, here, there or "")


def _examples(spark: Relation | None, theirs: Relation | None) -> tuple[str | None, str | None]:
    """The first value that is another one, or else the first, on each."""
    here, there = _values(spark), _values(theirs)
    keys = sorted(here.keys() | there.keys(), key=str)
    key = next((key for key in keys if here.get(key) != there.get(key)), None)
    if theirs is None or key is None:
        key = next(iter(keys), None)
    return _example(spark, here, key), _example(theirs, there, key)


def _values(relation: Relation | None) -> dict[Cell, Cell]:
    return {row[0]: row[1] for row in relation.rows} if relation else {}


def _example(relation: Relation | None, values: Mapping[Cell, Cell], key: Cell) -> str | None:
    if relation is None:
        return None
    if key not in values:
        return "no row"
    value = values[key]
    kind = relation.columns[1].type
    return f"{'null' if value is None else value} ({kind})"


def slipped(mutation: Mutation) -> list[str]:
    """What is wrong: mutants that no layer caught, controls that one did."""
    return [
        *_sentences(
            "slips through", (n for n, caught in mutation.mutants.items() if caught.layer is None)
        ),
        *_sentences(
            "does not build on Spark",
            (
                name
                for name, caught in {**mutation.mutants, **mutation.controls}.items()
                if caught.spark is None
            ),
        ),
        *(
            f"{name} is portable, and {caught.layer}: {caught.standin}"
            for name, caught in mutation.controls.items()
            if caught.layer is not None
        ),
    ]


def _sentences(what: str, names: Iterable[str]) -> list[str]:
    return [f"{name} {what}" for name in names]
