"""What the macros of increments refuse, and what they remember of runs that died."""

from __future__ import annotations

import datetime
import json
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros
from tests.python.unit.dbt.test_increment_macros import (
    FACT,
    PARENT,
    Node,
    increment,
    macros,
    node,
    recorded_day,
    recorded_read,
)

YOUNG = {"since": "2026-01-04T12:00:01", "after": {"pagila.sales": 3}}
CODE = json.dumps({"fct_sales": "a", "stg_sales": "b", "regions": "c"})


@pytest.mark.parametrize(
    ("now", "selected", "message"),
    [
        ({"stg_sales": "B"}, ["fct_sales"], "was built with other code of stg_sales"),
        ({"fct_sales": "A"}, ["fct_sales"], "was built with other code of fct_sales"),
        ({"stg_sales": "deferred"}, ["fct_sales"], "other code of stg_sales"),
    ],
)
def test_changed_code_stops_an_increment(
    now: dict[str, str], selected: list[str], message: str
) -> None:
    recorded = {"reads": [recorded_read(FACT, "x", 3, 7, code=CODE)], "days": []}
    code = json.dumps({**json.loads(CODE), **now})

    with pytest.raises(CompilerError, match=message):
        macros(selected_resources=selected).assert_increment_fits(
            increment(recorded=recorded, code=code)
        )


def test_code_that_an_older_lake_did_not_record_is_taken_as_it_is() -> None:
    recorded = {"reads": [recorded_read(FACT, "x", 3, 7)], "days": []}

    macros().assert_increment_fits(increment(recorded=recorded, code=CODE))


@pytest.mark.parametrize("mine", [[], [recorded_read(FACT, "x", 3, 7, code="{}")]])
def test_what_is_built_whole_is_built_with_the_views_that_changed(
    mine: list[dict[str, Any]],
) -> None:
    begun = increment(
        is_everything=True, recorded={"reads": mine, "days": []}, code=CODE
    )

    with pytest.raises(
        CompilerError, match="built from regions, stg_sales as somebody"
    ):
        macros().assert_increment_fits(begun)
    macros(
        selected_resources=["fct_sales", "regions", "stg_sales"]
    ).assert_increment_fits(begun)


def test_a_checksum_knows_rows_from_layout() -> None:
    def of(code: str) -> Any:
        return macros().code_checksum(node("a", "view", code=code))

    assert of("select 1") == of("{#- why\n -#}\n-- so\n    select 1\n\n")
    assert of("select 1") != of("select 2")


def test_a_table_made_anew_or_set_back_stops_the_increment() -> None:
    mine = recorded_read(FACT, "pagila.sales", 3, 7, table_uuid="old", table_since=1000)
    begun = increment(recorded={"reads": [mine], "days": []})
    source = Node(source_name="pagila", name="sales", schema="bronze", identifier="s")
    context = macros(graph={"nodes": {}, "sources": {"s": source}})

    def reads(to: int, uuid: str | None, since: int) -> None:
        read = {"after": 3, "to": to, "table_uuid": uuid, "table_since": since}
        context.assert_same_table(begun, "pagila.sales", read)

    for to, uuid, since, message in [
        (9, "new", 2000, "was recreated"),
        (9, "old", 2000, "was set back"),
        (2, None, 0, "ends with commit 2"),
    ]:
        with pytest.raises(CompilerError, match=message) as raised:
            reads(to, uuid, since)
        assert "--full-refresh --select source:pagila.sales+`" in str(raised.value)
    reads(3, "old", 1000)
    reads(3, None, 0)


def at_work(now: str = "2026-01-05T12:00:00") -> Macros:
    return macros(run_started_at=datetime.datetime.fromisoformat(now))


def test_runs_of_unknown_end_are_rewritten_for_a_day() -> None:
    days = [
        recorded_day(date(2026, 1, 1), 8, FACT, run_id="failed"),
        recorded_day(None, 8, FACT, is_end=True, run_id="failed"),
    ]
    begun = increment(
        recorded={"reads": [], "days": days},
        unfinished={
            "old": {"since": "2026-01-04T11:59:59", "after": {}},
            "young": YOUNG,
            "itself": {"since": "ended", "after": {}},
        },
        reads={"pagila.sales": {"after": 4, "to": 6}},
    )

    still = at_work().still_unfinished(begun, ["beside", "failed"])

    beside = {"since": "2026-01-05T12:00:00", "after": {"pagila.sales": 4}}
    assert still == {"young": YOUNG, "beside": beside}


def test_what_was_read_beside_a_run_of_unknown_end_is_read_again() -> None:
    mine = recorded_read(FACT, "pagila.sales", 6, 7)
    begun = increment(recorded={"reads": [mine], "days": []})

    assert macros().read_surely(begun, "pagila.sales") == 6
    begun["unfinished"] = {"young": YOUNG, "other": {"since": "", "after": {}}}
    assert macros().read_surely(begun, "pagila.sales") == 3
    assert macros().read_surely(begun, "pagila.refunds") == 0


def test_an_unfinished_run_is_rewritten_whatever_its_number() -> None:
    days = [
        recorded_day(date(2026, 1, 1), 6, FACT, run_id="dead"),
        recorded_day(date(2026, 1, 2), 6, FACT, run_id="done"),
        recorded_day(date(2026, 1, 3), 8, FACT, run_id="later"),
    ]
    begun = increment(recorded={"reads": [], "days": days})

    macros().touch_days(begun, FACT, 7, {"dead": YOUNG})

    assert sorted(begun["days"]) == [date(2026, 1, 1), date(2026, 1, 3)]


def test_days_that_are_put_together_stay_once_and_those_of_unfinished_runs_all() -> (
    None
):
    days = [
        recorded_day(date(2026, 1, 1), 3, FACT),
        recorded_day(date(2026, 1, 1), 5, FACT),
        recorded_day(date(2026, 1, 2), 5, FACT),
        recorded_day(date(2026, 1, 2), 4, FACT, run_id="dead"),
        recorded_day(None, 4, FACT, is_end=True),
        recorded_day(date(2026, 1, 9), 4, PARENT),
    ]
    begun = increment(recorded={"reads": [], "days": days}, unfinished={"dead": YOUNG})

    kept_rows = macros().kept_days(begun, [[date(2026, 1, 2), False]])

    assert [(row["day"], row["increment_id"]) for row in kept_rows] == [
        (date(2026, 1, 1), 5),
        (date(2026, 1, 2), 4),
    ]


def test_a_unit_test_cannot_pretend_to_be_an_increment() -> None:
    context = macros(
        tojson=json.dumps,
        model=SimpleNamespace(
            resource_type="unit_test", overrides={"macros": {"is_incremental": True}}
        ),
    )

    with pytest.raises(CompilerError, match="leave out the override of is_incremental"):
        context.begin_increment(time_column="paid_at")


def test_the_command_that_mends_has_the_options_that_were_given() -> None:
    given = {"defer": True, "state": "last run", "target": "ada"}
    adapter = SimpleNamespace(get_relation=lambda *_: None)
    context = macros(invocation_args_dict=given, adapter=adapter)

    assert context.refresh_command() == (
        "dbt build --full-refresh --select fct_sales+"
        " --defer --state 'last run' --target ada"
    )
    assert context.is_deferred(node("stg_sales", "view"))
    assert context.model_code()["stg_sales"] == "deferred"
