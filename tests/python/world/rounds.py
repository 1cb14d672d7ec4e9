"""Rounds of dbt on a lake, after each of which what grew must be what a full refresh makes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.python.world.kafka import Row

Step = dict[str, Any]
OWN_SCHEMAS = ["--vars", "{bare_schema_targets: []}"]
NO_TESTS = ["--exclude-resource-type", "test", "unit_test"]


class Rounds:
    """The steps of some rounds, and which of them must succeed, or find no difference.

    Args:
        seed: Decides everything.

    Attributes:
        steps: As ``lake_program`` takes them.
        must_succeed: Those that run dbt.
        differences: Those that must find none, with the number of their round.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.steps: list[Step] = []
        self.must_succeed: list[int] = []
        self.differences: dict[int, int] = {}

    def ask(self, query: str) -> int:
        """A step that runs SQL; its number."""
        self.steps.append({"sql": query})
        return len(self.steps) - 1

    def commit(self, table: str, rows: list[Row]) -> None:
        """What ingest wrote, if anything."""
        if rows:
            self.steps.append({"commit": table, "rows": rows})

    def dbt(self, words: list[str], target: str = "target") -> None:
        """A run that must succeed."""
        self.must_succeed.append(len(self.steps))
        self.steps.append({"dbt": words, "target": target})

    def whole(self, words: list[str]) -> None:
        """The same models once more, in schemas of their own."""
        self.dbt([*words, *OWN_SCHEMAS], target="whole")

    def compare(self, number: int, query: str) -> None:
        """A query of what differs, which must be nothing."""
        self.differences[self.ask(query)] = number

    def assert_equal(self, results: Sequence[Any]) -> None:
        """All runs of dbt have succeeded, and nothing differs."""
        for at in self.must_succeed:
            done = results[at]
            assert done["success"], f"seed {self.seed}, step {at}: {done['said']}"
        for at, number in self.differences.items():
            assert results[at] == [], f"seed {self.seed}, round {number}, step {at}"


def differences(relation: str) -> str:
    """A query of the rows that only one has, the relation or the whole one."""
    other = f"dev_{relation}"
    return (
        f"select 'only by increments', * from"
        f" (select * from {relation} except all select * from {other})"
        f" union all select 'only by a full refresh', * from"
        f" (select * from {other} except all select * from {relation})"
    )
