"""The commands of every day, each typed by itself, on a lake that has records of one stream.

Fails when one of dbt's commands needs more before it than the commands that a newcomer types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.spark.increments_records import DAYS, Records
from tests.python.spark.lake_steps import do_steps

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

pytestmark = pytest.mark.nightly


def records() -> list[dict[str, Any]]:
    return Records(seed=3).some(5, DAYS, newest=9)["bronze.pagila__sales"]


def test_each_command_works_by_itself(home: Home, tmp_path: Path) -> None:
    results = do_steps(
        tmp_path,
        [
            {"commit": "bronze.pagila__sales", "rows": records()},
            *({"dbt": words} for words in COMMANDS),
        ],
    )

    failed = {
        f"{number} dbt {' '.join(words)}": done["said"]
        for number, (words, done) in enumerate(
            zip(COMMANDS, results[1:], strict=True), 1
        )
        if not done["success"]
    }
    assert failed == {}
