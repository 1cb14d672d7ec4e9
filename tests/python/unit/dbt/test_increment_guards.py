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
    BY_THIS_CODE,
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
CODE = json.dumps({"checksums": 2, "fct_sales": "a", "stg_sales": "b", "regions": "c"})


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"stg_sales": "B"}, "was built from other code of stg_sales"),
        ({"fct_sales": "A"}, "was built from other code of fct_sales"),
        ({"stg_sales": "deferred"}, "other code of stg_sales"),
        (
            {f"view_{number}": "b" for number in range(5)},
            "view_0, view_1, view_2 and 2 more",
        ),
    ],
)
def test_changed_code_stops_an_increment(now: dict[str, str], message: str) -> None:
    recorded = {"reads": [recorded_read(FACT, "x", 3, 7, code=CODE)], "days": []}
    code = json.dumps({**json.loads(CODE), **now})

    with pytest.raises(CompilerError, match=message):
        macros().assert_increment_fits(increment(recorded=recorded, code=code))
    macros(settings={"accept_changed_code": True}).assert_increment_fits(
        increment(recorded=recorded, code=code)
    )


@pytest.mark.parametrize("code", [None, json.dumps({"fct_sales": "a"})])
def test_an_older_version_recorded_no_such_checksums(code: str | None) -> None:
    recorded = {"reads": [recorded_read(FACT, "x", 3, 7, code=code)], "days": []}

    with pytest.raises(
        CompilerError, match=r"older .* run `dbt build --full-refresh`$"
    ):
        macros().assert_increment_fits(increment(recorded=recorded, code=CODE))


def test_another_setting_stops_an_increment_with_both_values() -> None:
    before = json.dumps({"length_minutes": 10, "slide_minutes": 5})
    now = json.dumps({"length_minutes": 15, "slide_minutes": 5})
    mine = recorded_read(FACT, "x", 3, 7, before, code=CODE)
    begun = increment(recorded={"reads": [mine], "days": []}, settings=now, code=CODE)

    with pytest.raises(CompilerError, match="with length_minutes 10, which is now 15:"):
        macros().assert_increment_fits(begun)


@pytest.mark.parametrize("is_everything", [True, False])
@pytest.mark.parametrize(
    ("built", "message"),
    [
        ({"stg_sales": "0" * 12}, r"run `dbt run --select stg_sales fct_sales\+`"),
        # Spark's answer where a relation has no such property.
        (
            {"regions": "Table regions does not have property: millrace.code"},
            r"run `dbt build --select regions fct_sales\+`",
        ),
    ],
)
def test_a_model_is_built_from_parents_of_this_code(
    built: dict[str, str], message: str, is_everything: bool
) -> None:
    mine = recorded_read(FACT, "x", 3, 7, code=CODE)
    begun = increment(
        is_everything=is_everything,
        recorded={"reads": [mine], "days": []},
        code=CODE,
    )
    lake = {**BY_THIS_CODE, **built}

    with pytest.raises(CompilerError, match=f", built from other code .*{message}"):
        macros(built=lake).assert_increment_fits(begun)
    macros(
        built=lake, selected_resources=["fct_sales", "regions", "stg_sales"]
    ).assert_increment_fits(begun)
    macros().assert_increment_fits(begun)


def test_a_parent_that_is_not_there_is_to_be_built_first() -> None:
    begun = increment(is_everything=True, code=CODE)

    with pytest.raises(
        CompilerError,
        match=r"regions, not built yet: run `dbt build --select \+fct_sales`",
    ):
        macros(built={"stg_sales": BY_THIS_CODE["stg_sales"]}).assert_increment_fits(
            begun
        )


def test_a_full_refresh_takes_along_the_parents_that_the_lake_has_from_other_code() -> (
    None
):
    lake = {**BY_THIS_CODE, "stg_sales": "0" * 12}

    assert macros(built=lake).refresh_command() == (
        "dbt run --full-refresh --select stg_sales fct_sales+"
    )
    assert macros(built=lake).refresh_command("fct_parent") == (
        "dbt run --full-refresh --select stg_sales fct_parent+"
    )
    assert macros().refresh_command() == "dbt run --full-refresh --select fct_sales+"


def test_a_full_refresh_leaves_out_what_reads_marts_that_are_not_there() -> None:
    lake = {key: built for key, built in BY_THIS_CODE.items() if key != "fct_parent"}

    assert macros(built=lake).refresh_command() == (
        "dbt run --full-refresh --select fct_sales"
    )


def test_a_table_records_that_a_parent_of_it_was_of_other_code() -> None:
    table = node("dim_regions", "table", "stg_sales")
    same, other = macros(), macros({**BY_THIS_CODE, "stg_sales": "0" * 12})

    assert same.code_checksum_of_relation(table, True) == (
        same.code_checksum_of_relation(table)
    )
    assert other.code_checksum_of_relation(table, True) != (
        other.code_checksum_of_relation(table)
    )


@pytest.mark.parametrize(
    "same",
    [
        "{#- why -#}\n-- so\n    select sum(a) as b from c -- it's why\n\n",
        "select sum(\n    a\n) as b\nfrom c",
        "select /* of\nall */ sum( a ) as b from c",
    ],
)
def test_a_checksum_knows_rows_from_layout(same: str) -> None:
    def of(code: str) -> Any:
        return macros().bare_code(code)

    assert of(same) == of("select sum(a) as b from c")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 1", "select 2"),
        ("select 'a  b'", "select 'a b'"),
        ("select '-- a' as b", "select '-- c' as b"),
        ("select 'it''s -- a' as b", "select 'it''s -- c' as b"),
        ("{{ a }}b", "{{ a }} b"),
        ("select 1 -- {{ lines('a') }}", "select 1 -- {{ lines('b') }}"),
        ("select 'a' /* ' */, 'b'", "select 'a', 'c'"),
        ('{{ f("(# a") }}', '{{ f("(# b") }}'),
    ],
)
def test_a_checksum_changes_with_whatever_may_make_other_rows(
    one: str, other: str
) -> None:
    assert macros().bare_code(one) != macros().bare_code(other)


def test_a_checksum_changes_with_a_variable_that_the_code_names() -> None:
    view = node("a", "view", code="select {{ var('days') }}")

    assert macros(settings={"days": 1}).code_checksum(view) != (
        macros(settings={"days": 2}).code_checksum(view)
    )


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
    context = macros(built={}, invocation_args_dict=given)

    with pytest.raises(CompilerError) as raised:
        context.assert_increment_fits(increment())
    assert "`dbt run --full-refresh --select fct_sales+ --defer" in str(raised.value)
    assert str(raised.value).endswith(" --state 'last run' --target ada`")
    assert context.is_deferred(node("stg_sales", "view"))
    assert context.model_code()["stg_sales"] == "deferred"
