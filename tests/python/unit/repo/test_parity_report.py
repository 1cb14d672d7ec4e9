"""`make parity` says what it found."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.python.parity import mutation, page
from tests.python.parity.compare import Difference
from tests.python.parity.mutation import CELLS, RENDER, STANDIN, Caught, Mutation
from tests.python.parity.relations import Column, Relation
from tests.python.parity.report import PLAIN_WIDTH, print_mutation, print_trial
from tests.python.parity.trial import ENGINES, ROUNDS, Built, Compared, Trial

SALES = Relation((Column("sale_id", "integer"),), (("1",), ("2",)))


def trial(*differences: Difference, failures: dict[str, str] | None = None) -> Trial:
    equal = Compared("marts.fct_sales", SALES, [], {})
    other = replace(equal, differences=list(differences))
    return Trial(
        {name: {"marts.fct_sales": other if name == "odd" else equal} for name in ROUNDS},
        {name: Built({}, {engine: failures or {} for engine in ENGINES}, {}) for name in ROUNDS},
        {},
        {},
        {},
        {},
    )


def caught(
    layer: str | None = CELLS, spark: str | None = "1 (integer)", **others: Caught
) -> Mutation:
    good = {
        name: Caught(CELLS, "1 (integer)", "2 (integer)")
        for name in (mutant.file for mutant in mutation.mutants())
    }
    good["integer_division"] = Caught(layer, spark, "0 (integer)")
    return Mutation(good, {"control_1": Caught(None, "1", "1"), **others})


def printed(found: Trial | Mutation) -> str:
    out = StringIO()
    console = Console(file=out, width=PLAIN_WIDTH)
    if isinstance(found, Trial):
        print_trial(console, found)
    else:
        print_mutation(console, found)
    return out.getvalue()


def test_all_equal_is_good() -> None:
    found = trial()

    assert not found.differs
    assert found.failures == []
    line = next(line for line in printed(found).splitlines() if "fct_sales" in line)
    assert line.split() == ["marts.fct_sales", "1", "2", "2", "2", "equal"]


def test_a_cell_that_differs_is_reported() -> None:
    found = trial(Difference("'1'", "sale_id", "'1'", "null"))

    assert found.differs
    assert "differs: 1 after 'odd'" in printed(found)
    assert ("odd: marts.fct_sales: '1', sale_id: '1' on Spark, null on the emulator") in printed(
        found
    )


def test_a_failure_of_dbt_is_reported() -> None:
    found = trial(failures={"test.unique": "Got 1 result"})

    assert len(found.failures) == len(ROUNDS) * len(ENGINES)
    assert "dbt: test.unique of the round 'first'" in printed(found)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (caught(layer=None), "integer_division slips through"),
        (caught(spark=None), "integer_division does not build on Spark"),
        (
            caught(control_2=Caught(STANDIN, "1", "no such function")),
            "control_2 is portable, and refused by the emulator: no such function",
        ),
    ],
)
def test_what_slips_through_is_reported(found: Mutation, sentence: str) -> None:
    assert mutation.slipped(found) == [sentence]
    assert sentence in printed(found)


def test_the_first_layer_that_catches_is_reported() -> None:
    columns = (Column("row_key", "integer"), Column("found", "integer"))
    one, two = Relation(columns, (("1", "1"),)), Relation(columns, (("1", "2"),))
    good, bad = "select 1 as found", "select now() as found"

    assert mutation.caught_by(bad, one, None, "no").layer == RENDER
    assert mutation.caught_by(good, one, None, "no") == Caught(STANDIN, "1 (integer)", "no")
    assert mutation.caught_by(good, one, two, "").layer == CELLS
    assert mutation.caught_by(good, one, one, "").layer is None
    assert mutation.caught_by(good, None, one, "").spark is None


def test_the_page_is_written_of_the_mutants_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "run_mutants", lambda _home: caught())
    monkeypatch.setattr(page, "FILE", tmp_path / "page.md")

    page.main()

    text = (tmp_path / "page.md").read_text()
    assert "| `payment_id / 2` | `1` (integer) |" in text
    assert r"\|\| '-' \|\|" in text


def test_values_of_the_driver_are_written_as_spark_writes_them() -> None:
    from tests.python.parity.relations import spark_time

    assert spark_time("2026-01-01 10:00:00.5") == "2026-01-01 10:00:00.5"
    assert spark_time("10000-01-01 00:05:00") == "+10000-01-01 00:05:00"
    assert spark_time("0001-12-31 23:55:00 BC") == "0000-12-31 23:55:00"
