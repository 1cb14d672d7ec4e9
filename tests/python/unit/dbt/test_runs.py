"""What a hook writes of an invocation of dbt into `state.runs`.

Fails when a result of dbt makes no row, or one that an engine refuses or that says otherwise.
"""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.python.unit.dbt.test_dbt_macros import ENGINES, Macros, Table


class EmptySource(Table):
    """What `source` gives under `--empty`: its text is a query, its parts are the table's."""

    __slots__ = ()
    database = None
    schema = "state"
    identifier = "runs"


STARTED_AT = dt.datetime(2026, 3, 31, 12, 0, 0, 250_000, tzinfo=dt.UTC)


def result(name: str = "m", kind: str = "model", **given: Any) -> SimpleNamespace:
    """A result as dbt gives it to a hook."""
    node = SimpleNamespace(unique_id=f"{kind}.millrace.{name}", name=name, resource_type=kind)
    executed = SimpleNamespace(name="execute", started_at=STARTED_AT)
    usual = {
        "status": "success",
        "execution_time": 1.25,
        "adapter_response": {},
        "failures": None,
        "message": None,
        "timing": [SimpleNamespace(name="compile", started_at=None), executed],
    }
    return SimpleNamespace(node=node, **(usual | given))


def recorded(engine: str, *results: SimpleNamespace) -> list[str]:
    """The statements that the hook sends."""
    sent: list[str] = []
    context = {
        "source": lambda *_: EmptySource("(select * from state.runs where false limit 0)"),
        "api": SimpleNamespace(
            Relation=SimpleNamespace(
                create=lambda schema, identifier, **_: Table(f"{schema}.{identifier}")
            )
        ),
        "run_query": sent.append,
        "invocation_id": "i-1",
        "flags": SimpleNamespace(WHICH="build"),
        "run_started_at": STARTED_AT - dt.timedelta(hours=1),
        "modules": SimpleNamespace(datetime=dt),
    }
    settings = {"run_history_days": 30}
    Macros(engine, settings=settings, context=context).record_runs(list(results))
    return sent


def rows(*results: SimpleNamespace) -> list[tuple[Any, ...]]:
    """The rows that the hook writes."""
    (sent,) = recorded("redshift", *results)
    query = sent.partition("insert into state.runs")[2].rpartition("commit")[0]
    return duckdb.sql(query.rstrip(" ;\n")).fetchall()


def test_a_result_is_a_row() -> None:
    assert rows(result("fct_sales")) == [
        (
            *("i-1", "build", "model.millrace.fct_sales", "fct_sales", "model"),
            *("success", 1.25, None, None, STARTED_AT.replace(tzinfo=None)),
            STARTED_AT.date(),
        )
    ]


def test_rows_are_those_of_a_statement_or_those_that_failed() -> None:
    counted = [
        row[7]
        for row in rows(
            result(adapter_response={"rows_affected": 5}),
            result(adapter_response={"rows_affected": -1}),
            result(kind="test", status="fail", failures=3, adapter_response={"rows_affected": 1}),
            result(kind="test", status="pass", failures=0),
        )
    ]

    assert counted == [5, None, 3, 0]


def test_what_was_skipped_began_with_the_invocation() -> None:
    (row,) = rows(result(status="skipped", timing=[], execution_time=0))

    assert row[9] == (STARTED_AT - dt.timedelta(hours=1)).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Got 3 results, configured to fail if != 0", "Got 3 results, configured to fail if != 0"),
        (
            "Runtime Error in model m (models/m.sql)\r\n  column x's \\ is not there\n  at 3",
            "Runtime Error in model m (models/m.sql): column x's \\ is not there",
        ),
        (
            "Compilation Error in model m (models/m.sql)",
            "Compilation Error in model m (models/m.sql)",
        ),
        ("\n  spaced  \nmore", "spaced  "),
        ("é" * 900, "é" * 500),
        ("", None),
    ],
)
def test_a_message_is_its_first_line_that_says_what_happened(
    message: str, said: str | None
) -> None:
    (row,) = rows(result(message=message))

    assert row[8] == said


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_older_than_the_history_goes_in_the_same_statement(engine: str) -> None:
    (sent,) = recorded(engine, result())

    assert "run_date < cast('2026-03-01' as date)" in sent


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_written_of_hooks_and_exposures(engine: str) -> None:
    assert recorded(engine, result(kind="operation"), result(kind="exposure")) == []
