"""The commands of every day, each typed by itself, on a lake that has records of one stream.

Fails when one of dbt's commands needs more before it than the commands that a newcomer types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import PROJECT, Home
from tests.python.spark.bronze_tables import tables_made
from tests.python.spark.lake_steps import do_steps
from tests.python.world.records import DAYS, Records

MODEL = "fct_rental_sales"
# What ingest has made before: all bronze tables, and records of sales.
COMMANDS: list[list[str]] = [
    ["debug"],
    ["list"],
    ["seed"],
    ["run"],
    ["test"],
    ["run", "--select", MODEL],
    ["build", "--select", f"{MODEL}+"],
    ["show", "--select", MODEL],
    ["source", "freshness"],
    ["docs", "generate"],
    ["retry"],
    ["run"],
]

# What each of these misses on such a lake is named with the command that makes it.
TOO_EARLY: list[list[str]] = [
    ["show", "--select", MODEL],
    ["test", "--select", f"{MODEL},test_type:unit"],
    ["run", "--select", MODEL],
]
STEP = "run `dbt build --select +"

pytestmark = pytest.mark.nightly


# One of them is made earlier than its records may be old.
SILENT = (
    "update bronze.ingest_commits set committed_at = current_timestamp() - interval 400"
    " days where table_name = 'bronze.smoothies__purchases'"
)
FRESHNESS = ["source", "freshness", "--select", "source:smoothies.purchases"]


def records() -> list[dict[str, Any]]:
    return Records(seed=3).some(5, DAYS, newest=9)["bronze.pagila__sales"]


def test_each_command_works_by_itself(home: Home, tmp_path: Path) -> None:
    results = do_steps(
        tmp_path,
        [
            {"commit": "bronze.pagila__sales", "rows": records()},
            {"sql": tables_made(PROJECT)},
            *({"dbt": words} for words in [*TOO_EARLY, *COMMANDS]),
            {"sql": SILENT},
            {"dbt": FRESHNESS},
        ],
    )
    *results, _, silent = results[2:]
    early, done = results[: len(TOO_EARLY)], results[len(TOO_EARLY) :]

    assert [(of["success"], STEP in of["said"]) for of in early] == [
        (False, True) for _ in TOO_EARLY
    ]

    failed = {
        f"{number} dbt {' '.join(words)}": of["said"]
        for number, (words, of) in enumerate(zip(COMMANDS, done, strict=True), 1)
        if not of["success"]
    }
    assert failed == {}
    assert not silent["success"]
