"""What the macros of increments refuse, and what they remember of runs that died."""

from __future__ import annotations

import datetime
import json
from datetime import date
from types import SimpleNamespace

import pytest

from docs.generate.domain_pages import Manifest
from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros
from tests.python.unit.dbt.test_increment_macros import (
    BY_THIS_CODE,
    FACT,
    PARENT,
    Node,
    SimpleGraph,
    increment,
    macros,
    node,
    recorded_day,
    recorded_read,
)

YOUNG = {"since": "2026-01-04T12:00:01", "after": {"pagila.sales": 3}}
CODE = json.dumps({"checksums": 3, "fct_sales": "a", "stg_sales": "b", "regions": "c"})


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"stg_sales": "B"}, "was built from other code of stg_sales"),
        ({"fct_sales": "A"}, "was built from other code of fct_sales"),
        ({"stg_sales": "deferred"}, "other code of stg_sales"),
        ({f"view_{number}": "b" for number in range(5)}, "view_0, view_1, view_2 and 2 more"),
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

    with pytest.raises(CompilerError, match=r"older .* run `dbt build --full-refresh`$"):
        macros().assert_increment_fits(increment(recorded=recorded, code=CODE))


def test_another_setting_stops_an_increment_with_both_values() -> None:
    before = json.dumps({"length_minutes": 10, "slide_minutes": 5})
    now = json.dumps({"length_minutes": 15, "slide_minutes": 5})
    mine = recorded_read(FACT, "x", 3, 7, before, code=CODE)
    begun = increment(recorded={"reads": [mine], "days": []}, settings=now, code=CODE)

    with pytest.raises(CompilerError, match="with length_minutes 10, which is now 15:"):
        macros().assert_increment_fits(begun)


@pytest.mark.parametrize("is_full_refresh", [True, False])
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
    built: dict[str, str], message: str, is_full_refresh: bool
) -> None:
    mine = recorded_read(FACT, "x", 3, 7, code=CODE)
    begun = increment(
        is_full_refresh=is_full_refresh, recorded={"reads": [mine], "days": []}, code=CODE
    )
    lake = {**BY_THIS_CODE, **built}

    with pytest.raises(CompilerError, match=f", built from other code .*{message}"):
        macros(built=lake).assert_increment_fits(begun)
    macros(
        built=lake, selected_resources=["fct_sales", "regions", "stg_sales"]
    ).assert_increment_fits(begun)
    macros().assert_increment_fits(begun)


def test_a_parent_that_is_not_there_is_to_be_built_first() -> None:
    begun = increment(is_full_refresh=True, code=CODE)

    with pytest.raises(
        CompilerError, match=r"regions, not built yet: run `dbt build --select \+fct_sales`"
    ):
        macros(built={"stg_sales": BY_THIS_CODE["stg_sales"]}).assert_increment_fits(begun)


@pytest.mark.parametrize(
    "parent",
    [node("mine", "snapshot"), Node(node("mine", "table"), language="python")],
    ids=["a snapshot", "a model in Python"],
)
def test_what_records_no_checksum_is_asked_for_none(parent: Node) -> None:
    graph = SimpleGraph()
    graph["nodes"]["mine"] = parent
    graph["nodes"]["fct_sales"].depends_on.nodes = ("stg_sales", "mine")

    context = macros({**BY_THIS_CODE, "mine": "none"}, graph=graph)

    assert context.parents_of_other_code("fct_sales") == []
    assert "mine" not in context.model_code()


def test_a_full_refresh_takes_along_the_parents_that_the_lake_has_from_other_code() -> None:
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

    assert macros(built=lake).refresh_command() == ("dbt run --full-refresh --select fct_sales")


def test_a_table_records_that_a_parent_of_it_was_of_other_code() -> None:
    table = node("dim_regions", "table", "stg_sales")
    same, other = macros(), macros({**BY_THIS_CODE, "stg_sales": "0" * 12})

    assert same.code_checksum_of_relation(table, True) == (same.code_checksum_of_relation(table))
    assert other.code_checksum_of_relation(table, True) != (other.code_checksum_of_relation(table))


@pytest.mark.parametrize(
    ("parent", "is_refused"),
    [
        (node("mine", "table", "view_of_mine"), True),
        (node("mine", "table", "source.pagila.sales"), True),
        (node("mine", "table", "regions"), False),
        (node("mine", "seed"), False),
        (node("mine", "snapshot"), True),
        (node("mine", "incremental"), True),
        (Node(node("mine", "table"), language="python"), True),
        (node("mine", "view", "history"), True),
        (node("mine", "view", "source.crm.accounts"), True),
        (node("mine", "view", "source.pagila.sales"), False),
        (node("mine", "view", "fct_parent"), False),
    ],
    ids=[
        "a table of a history",
        "a table of a stream that is followed",
        "a table of a seed",
        "a seed",
        "a snapshot",
        "an incremental model",
        "a model in Python",
        "a view of a history",
        "a view of a source",
        "a view of a stream that is followed",
        "a view of a fact that is followed",
    ],
)
def test_a_parent_with_data_of_its_own_that_nobody_follows_is_refused(
    parent: Node, *, is_refused: bool
) -> None:
    graph = SimpleGraph()
    nodes = graph["nodes"]
    nodes |= {
        "mine": parent,
        "history": node("history", "incremental"),
        "view_of_mine": node("view_of_mine", "view", "history"),
    }
    nodes["fct_sales"].depends_on.nodes = ("stg_sales", "fct_parent", "mine")
    graph["sources"] = {
        f"source.{name}": Node(source_name=name.split(".")[0], name=name.split(".")[1])
        for name in ("pagila.sales", "crm.accounts")
    }
    context = macros(graph=graph)
    begun = increment(reads={PARENT: {}, "pagila.sales": {}})

    if is_refused:
        with pytest.raises(CompilerError, match=r"^marts\.fct_sales reads ") as raised:
            context.assert_parents_are_followed(begun)
        assert "docs/architecture.md" in str(raised.value)
        assert "materialized='table'" in str(raised.value)
    else:
        context.assert_parents_are_followed(begun)
    begun["follows"] = ["mine"]
    context.assert_parents_are_followed(begun)


def test_a_deferred_parent_is_followed_by_its_name_in_the_other_target() -> None:
    graph = SimpleGraph()
    deferred = Node(schema="marts", alias="fct_parent")
    graph["nodes"]["fct_parent"] |= {"schema": "ada_marts", "defer_relation": deferred}
    context = macros({}, graph=graph, invocation_args_dict={"defer": True})
    begun = increment(reads={PARENT: {}})

    context.assert_parents_are_followed(begun)

    with pytest.raises(CompilerError, match=r"reads marts\.fct_parent, whose changes"):
        context.assert_parents_are_followed(begun | {"reads": {}})


@pytest.mark.parametrize(
    ("parents", "is_refused"),
    [(("fct_parent",), False), (("fct_parent", "mine"), True), (("regions",), False)],
)
def test_a_fact_by_keys_follows_a_history_and_not_what_a_view_makes_of_it(
    parents: tuple[str, ...], *, is_refused: bool
) -> None:
    """It compares the columns that it names, and of a view of the same history none."""
    graph = SimpleGraph()
    graph["nodes"]["mine"] = node("mine", "view", "fct_parent")
    graph["nodes"]["fct_sales"].depends_on.nodes = parents
    begun = increment(reads={PARENT: {}}, follows=["fct_parent"], own_changes="select")

    if is_refused:
        with pytest.raises(CompilerError, match="fct_parent, whose changes"):
            macros(graph=graph).assert_parents_are_followed(begun)
    else:
        macros(graph=graph).assert_parents_are_followed(begun)


@pytest.mark.parametrize(
    ("strategy", "is_begun", "message"),
    [
        ("rewrite", False, "rewrite and begins no increment: begin it with"),
        ("rewrite_keys", False, "rewrite_keys and begins no increment"),
        (None, True, "incremental_strategy is the adapter's own: set it to rewrite or"),
        ("merge", True, "incremental_strategy is merge: set it to rewrite or"),
        ("merge", False, None),
        (None, False, None),
        ("rewrite", True, None),
    ],
)
def test_a_strategy_of_ours_and_an_increment_come_together(
    strategy: str | None, message: str | None, *, is_begun: bool
) -> None:
    model = SimpleNamespace(
        config=SimpleNamespace(materialized="incremental", incremental_strategy=strategy)
    )
    begun = increment() if is_begun else None

    if message is None:
        macros(model=model).assert_strategy_is_of_increment(begun)
    else:
        with pytest.raises(CompilerError, match=message):
            macros(model=model).assert_strategy_is_of_increment(begun)


def test_a_parent_with_increments_of_dbts_own_cannot_be_followed_by_days() -> None:
    graph = SimpleGraph()
    graph["nodes"]["fct_parent"].config.incremental_strategy = "merge"
    parent = SimpleNamespace(schema="marts", identifier="fct_parent")

    with pytest.raises(CompilerError, match=r"fct_parent, whose changes .* not follow"):
        macros(graph=graph).add_affected_days_of(increment(), parent)


def test_two_versions_of_a_model_are_two() -> None:
    second = Node(node("stg_sales", "view"), unique_id="stg_sales.v2", version=2)
    graph = SimpleGraph()
    graph["nodes"]["stg_sales.v2"] = second
    graph["nodes"]["fct_sales"].depends_on.nodes = ("stg_sales", "stg_sales.v2")

    assert {"stg_sales", "stg_sales.v2"} <= set(macros(graph=graph).model_code())


def test_a_recreated_or_rolled_back_table_stops_the_increment() -> None:
    mine = recorded_read(FACT, "pagila.sales", 3, 7, table_uuid="old", table_since=1000)
    begun = increment(recorded={"reads": [mine], "days": []})
    source = Node(source_name="pagila", name="sales", schema="bronze", identifier="s")
    context = macros(graph={"nodes": {}, "sources": {"s": source}})

    def reads(to: int, uuid: str | None, since: int) -> None:
        read = {"after": 3, "to": to, "table_uuid": uuid, "table_since": since}
        context.assert_same_table(begun, "pagila.sales", read)

    for to, uuid, since, message in [
        (9, "new", 2000, "was recreated"),
        (9, "old", 2000, "was rolled back"),
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

    assert macros().confirmed_read_to(begun, "pagila.sales") == 6
    begun["unfinished"] = {"young": YOUNG, "other": {"since": "", "after": {}}}
    assert macros().confirmed_read_to(begun, "pagila.sales") == 3
    assert macros().confirmed_read_to(begun, "pagila.refunds") == 0


def test_an_unfinished_run_is_rewritten_whatever_its_number() -> None:
    days = [
        recorded_day(date(2026, 1, 1), 6, FACT, run_id="dead"),
        recorded_day(date(2026, 1, 2), 6, FACT, run_id="done"),
        recorded_day(date(2026, 1, 3), 8, FACT, run_id="later"),
    ]
    begun = increment(recorded={"reads": [], "days": days})

    macros().add_recorded_days(begun, FACT, 7, {"dead": YOUNG})

    assert sorted(begun["days"]) == [date(2026, 1, 1), date(2026, 1, 3)]


def test_days_that_are_put_together_stay_once_and_those_of_unfinished_runs_all() -> None:
    days = [
        recorded_day(date(2026, 1, 1), 3, FACT),
        recorded_day(date(2026, 1, 1), 5, FACT),
        recorded_day(date(2026, 1, 2), 5, FACT),
        recorded_day(date(2026, 1, 2), 4, FACT, run_id="dead"),
        recorded_day(None, 4, FACT, is_end=True),
        recorded_day(date(2026, 1, 9), 4, PARENT),
    ]
    begun = increment(recorded={"reads": [], "days": days}, unfinished={"dead": YOUNG})

    kept_rows = macros().days_to_keep(begun, [[date(2026, 1, 2), False]])

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


@pytest.mark.parametrize(
    ("asked", "is_accepted", "is_refused"),
    [
        (["b", "a"], True, False),
        (["a", "b", "c"], True, True),
        (["a"], True, True),
        ([], False, False),
    ],
)
def test_accepted_code_must_give_the_columns_of_the_table(
    asked: list[str], *, is_accepted: bool, is_refused: bool
) -> None:
    """An increment writes the columns that the table has: a new one would be left out unseen."""
    columns = ["a", "b"]
    context = macros(
        settings={"accept_changed_code": is_accepted},
        adapter=SimpleNamespace(get_relation=lambda *names: names[-1]),
        get_columns_in_query=lambda _: asked,
        run_query=lambda _: SimpleNamespace(rows=[["millrace.code", ""]]),
        sql="select",
    )

    if is_refused:
        with pytest.raises(CompilerError, match="fct_sales has other columns than its query"):
            context.assert_same_columns(columns)
    else:
        context.assert_same_columns(columns)


@pytest.mark.parametrize("kind", ["incremental", "table"])
def test_models_in_python_are_built_on_spark(kind: str, manifest: Manifest) -> None:
    """Ours stand before the adapter's, which take both languages."""
    made = manifest["macros"][f"macro.millrace.materialization_{kind}_spark"]

    assert made["supported_languages"] == ["sql", "python"]
