"""What models of one build share, and what is recorded before a row is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.python.unit.dbt.test_dbt_macros import SETTINGS, CompilerError, Macros, Table
from tests.python.unit.dbt.test_increment_macros import (
    FACT,
    PARENT,
    Node,
    SimpleGraph,
    increment,
    macros,
    recorded_day,
)


class Lake:
    """Answers each question with the next of some rows, and remembers all statements."""

    def __init__(self, *answers: list[list[Any]]) -> None:
        self.asked: list[str] = []
        self._answers: Iterator[list[list[Any]]] = iter(answers)

    def run(self, statement: str) -> SimpleNamespace:
        self.asked.append(statement)
        is_question = statement.startswith("select")
        return SimpleNamespace(rows=next(self._answers) if is_question else [])


def on_lake(lake: Lake, begun: dict[str, Any] | None = None, **context: Any) -> Macros:
    """The macros of one invocation, at work on a model that has begun an increment."""
    source = Node(source_name="pagila", name="sales", schema="bronze", identifier="s")
    graph = SimpleGraph()
    graph["sources"]["s"] = source
    graph["millrace one"] = {f"increment of {FACT}": begun}
    return macros(
        graph=graph,
        run_query=lake.run,
        var=SETTINGS.get,
        target=SimpleNamespace(name="sandbox", schema="dev"),
        **context,
    )


def test_all_models_of_a_build_read_up_to_what_the_first_found() -> None:
    lake = Lake([["pagila.sales", 5]], [["pagila.sales", 7]])
    context = on_lake(lake)

    assert [context.read_point("pagila.sales") for _ in range(2)] == [5, 5]
    assert lake.asked == [
        "select 'pagila.sales' as stream, max(_commit_id) as newest from bronze.s"
    ]


def with_streams(lake: Lake, **context: Any) -> Macros:
    """The macros where two streams of three are behind the models that are built."""
    graph = SimpleGraph()
    for name in ("sales", "films", "alone"):
        graph["sources"][name] = Node(
            source_name="pagila",
            name=name,
            schema="bronze",
            identifier=name,
            config=SimpleNamespace(meta={"ingest": {"topic": name}}),
        )
    log = Node(source_name="ingest", name="ingest_commits", schema="bronze", identifier="log")
    log["config"] = SimpleNamespace(meta={})
    graph["sources"]["log"] = log
    graph["nodes"]["regions"].depends_on.nodes = ("sales", "films")
    return macros(
        graph=graph,
        run_query=lake.run,
        var=SETTINGS.get,
        target=SimpleNamespace(name="sandbox", schema="dev"),
        load_relation=lambda relation: relation,
        api=SimpleNamespace(
            Relation=SimpleNamespace(create=lambda identifier, **_: Table(identifier))
        ),
        **context,
    )


def test_one_question_is_for_all_streams_behind_what_is_built() -> None:
    """Between two, ingest may commit a sale together with its buyer."""
    lake = Lake([["pagila.films", None], ["pagila.sales", 5]])
    context = with_streams(lake)

    assert context.read_point("pagila.sales") == 5
    assert context.read_point("pagila.films") == 0
    (asked,) = lake.asked
    assert "from films" in asked
    assert "alone" not in asked


def test_read_points_are_found_once_before_models_begin() -> None:
    """Fails when each thread that begins an increment queries them."""
    lake = Lake([["marts.sales", "u1", 1]], [["pagila.films", 2], ["pagila.sales", 5]])
    columns = [SimpleNamespace(name="table_uuid")]
    adapter = SimpleNamespace(get_columns_in_relation=lambda _: columns)
    context = with_streams(lake, adapter=adapter)

    context.find_read_points()
    asked = list(lake.asked)
    assert len(asked) == 2
    assert context.read_point("pagila.sales") == 5
    assert context.bronze_identity("pagila.sales") == {"table_uuid": "u1", "table_since": 1}
    assert lake.asked == asked


@pytest.mark.parametrize(
    "context",
    [
        {"flags": SimpleNamespace(EMPTY=False, FULL_REFRESH=False, WHICH="test")},
        {"selected_resources": ["dim_regions", "regions"]},
    ],
)
def test_read_points_are_not_found_where_nothing_increments(context: dict[str, Any]) -> None:
    """Fails when `dbt test`, or a run of other models, queries what it does not use."""
    lake = Lake()

    with_streams(lake, **context).find_read_points()

    assert lake.asked == []


def test_a_build_that_made_the_tables_of_state_does_not_ask_for_them() -> None:
    columns_of = Mock(return_value=[])
    context = on_lake(
        Lake(),
        adapter=SimpleNamespace(get_columns_in_relation=columns_of),
        api=SimpleNamespace(
            Relation=SimpleNamespace(create=lambda identifier, **_: Table(identifier))
        ),
        source=lambda *_: SimpleNamespace(database=None, schema="state", identifier="runs"),
    )
    context.create_state_tables()

    assert context.are_increments_recorded()
    assert [call.args for call in columns_of.call_args_list] == [
        ("read_points",),
        ("touched_days",),
    ]


def test_days_are_recorded_before_their_rows_are_written() -> None:
    # Nobody has recorded one since this one began, behind 7.
    lake = Lake([["read", 7]])
    begun = increment(days=[date(2026, 1, 5), date(2026, 1, 2)], reads={PARENT: {}})

    on_lake(lake, begun).record_intent(begun)

    recorded, asked = lake.asked
    # Who else has recorded days matters when rows are written.
    assert asked.endswith("from state.read_points where model_name = 'marts.fct_sales'")
    assert recorded.startswith("insert into state.touched_days")
    # By one task, which writes one file.
    assert "select /*+ coalesce(1) */ *" in recorded
    assert "2026-01-02" in recorded
    assert "2026-01-05" in recorded
    assert begun["is_intent_recorded"]


@pytest.mark.parametrize("is_unaffected", [True, False])
def test_an_increment_that_affects_no_row_writes_nothing(is_unaffected: bool) -> None:
    begun = increment(
        reads={PARENT: {"after": 8, "to": 9}},
        key="sale_id",
        own_changes="select 1 as sale_id",
        is_unaffected=is_unaffected,
    )
    config = SimpleNamespace(get={"incremental_strategy": "rewrite_keys"}.get)

    statement = on_lake(Lake(), begun, config=config).increment_statement("sales", ["sale_id"])

    assert ("merge into" in statement) is not is_unaffected


def test_of_two_builds_at_one_time_one_stops() -> None:
    # Another run has recorded increment 8 since this one began behind 7.
    lake = Lake([["read", 8]])
    days = [recorded_day(date(2026, 1, 2), 8, FACT, run_id="other")]
    begun = increment(
        days=[date(2026, 1, 2)], reads={PARENT: {}}, recorded={"reads": [], "days": days}
    )

    with pytest.raises(CompilerError, match="another run of dbt built marts"):
        on_lake(lake, begun).record_intent(begun)


@pytest.mark.parametrize(
    ("engine", "sent"), [("redshift", ["a statement, True", "a commit"]), ("spark", [])]
)
def test_an_increment_is_announced_outside_the_transaction_of_rendering(
    engine: str, sent: list[str]
) -> None:
    """Its locks and those that another model waits for would meet in a deadlock."""
    done: list[str] = []
    read = {"after": 8, "to": 9, "table_uuid": None, "table_since": 0}
    begun = increment(days=[date(2026, 1, 2)], reads={PARENT: read})

    def run(_statement: str) -> SimpleNamespace:
        done.append("an announcement")
        return SimpleNamespace(rows=[["read", 7]])

    def statement(*, auto_begin: bool, caller: object) -> str:
        assert caller
        done.append(f"a statement, {auto_begin}")
        return ""

    context = macros(
        engine=engine,
        graph=SimpleGraph() | {"millrace one": {f"increment of {FACT}": begun}},
        statement=statement,
        adapter=SimpleNamespace(commit=lambda: done.append("a commit")),
        run_query=run,
    )

    def rows() -> None:
        raise CompilerError("no rows")

    with pytest.raises(CompilerError, match="no rows"):
        context.build_model(rows)

    assert done[: len(sent) + 1] == [*sent, "an announcement"]
