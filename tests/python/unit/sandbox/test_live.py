"""The report of a live run, and its options."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sandbox import cli
from sandbox.install import spark_conf
from sandbox.services import stack
from sandbox.settings import Home
from sandbox.tour import live
from sandbox.tour.dbt_rounds import increments, tables_with_topics
from sandbox.tour.round_report import History, Round
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

SALES = "marts.fct_rental_sales"
LINES = "marts.fct_purchases_enriched"


def a_round(number: int, **facts: Any) -> Round:
    message = {
        "event": "round",
        "number": number,
        "seconds": 8.0,
        "rows": 5_000,
        "ages": {SALES: 11.0, LINES: 12.5},
        "ages_before": {SALES: 20.0, LINES: 21.0},
    }
    return Round.read({**message, **facts})


def test_rounds_leave_out_tables_of_which_nothing_was_captured() -> None:
    def source(table: str, **meta: Any) -> Any:
        return SimpleNamespace(
            source_name="shop",
            name=table,
            schema="bronze",
            identifier=f"shop__{table}",
            config=SimpleNamespace(meta=meta),
        )

    sources = [
        source("sales", ingest={"topic": "sales"}),
        source("items", ingest={"topic": "shop.public.items", "captured": {}}),
        source("commits"),
    ]

    assert tables_with_topics(sources, {"sales", "__consumer_offsets"}) == {
        "shop.sales": "bronze.shop__sales"
    }


def test_rounds_count_no_rows_of_tables_that_nobody_builds() -> None:
    def model(name: str, materialized: str) -> Any:
        return SimpleNamespace(
            unique_id=f"model.shop.{name}",
            schema="marts",
            alias=name,
            config=SimpleNamespace(materialized=materialized),
        )

    models = [
        model("fct_sales", "incremental"),
        model("rpt_sales", "table"),
        model("int_items_history", "incremental"),
    ]

    assert increments(models, {"model.shop.int_items_history"}) == ["marts.fct_sales"]


def test_a_round_is_as_old_as_the_fact_that_is_furthest_behind() -> None:
    assert (a_round(1).age, a_round(1).age_before) == (12.5, 21.0)
    assert a_round(1, ages={SALES: None, LINES: 3.0}).age == 3.0
    assert a_round(1, ages={SALES: None, LINES: None}).age is None


def test_a_line_shows_a_round_whole() -> None:
    history = History([a_round(7)], {"pagila.sales": 1_200, "smoothies.purchases": 34})

    assert history.last_line() == (
        "round 7: 8.0 s, +5,000 rows in marts, age 12.5 s (fct_rental_sales 11.0 s,"
        " fct_purchases_enriched 12.5 s), ingest lag 1,234"
    )


def test_missing_values_are_shown_as_unknown() -> None:
    history = History([a_round(1, ages={SALES: None})], {"pagila.sales": None})

    assert history.last_line() == (
        "round 1: 8.0 s, +5,000 rows in marts, age unknown (fct_rental_sales unknown),"
        " ingest lag unknown"
    )


def test_the_summary_leaves_the_backlog_of_the_first_round_out_of_the_ages() -> None:
    rounds = [
        a_round(1, seconds=20.0, ages={SALES: 300.0}, ages_before={SALES: 900.0}),
        a_round(2, seconds=9.0, ages={SALES: 14.0}, ages_before={SALES: 320.0}),
        a_round(3, seconds=7.0, ages={SALES: 11.5}, ages_before={SALES: 25.0}),
    ]

    assert History(rounds).summary() == (
        "3 rounds: the first took 20.0 s; the others 8.0 s (median), 9.0 s at most;"
        " age after them 12.8 s (median), 14.0 s at most; at most 25.0 s before one"
    )
    assert History(rounds[:1]).summary() == "1 round: the first took 20.0 s"
    assert History().summary() == "ended before the first round"


def test_the_table_shows_the_last_round_and_all_ages() -> None:
    console = Console(width=100)
    history = History([a_round(1), a_round(2), a_round(3, ages={SALES: 4.0})], {"pagila.sales": 9})

    with console.capture() as shown:
        console.print(history.table("live for 30 s"))

    text = " ".join(shown.get().split())
    for part in ("live for 30 s", "8.0 s", "5,000", "4.0 s old", "8.2 / 12.5 s", "9 records"):
        assert part in text


def test_an_invalid_rate_is_rejected() -> None:
    done = CliRunner().invoke(cli.app, ["live", "--rate", "fast"])

    assert isinstance(done.exception, ConfigurationError)
    assert str(done.exception).startswith("--rate 'fast' is not a valid rate")


def test_minutes_do_not_go_backwards() -> None:
    assert CliRunner().invoke(cli.app, ["live", "--minutes", "-1"]).exit_code == 2


def test_the_help_teaches_how_to_end_it() -> None:
    shown = CliRunner().invoke(cli.app, ["live", "--help"]).output

    assert "Ctrl-C" in shown
    assert "--minutes" in shown


def test_parts_are_fetched_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Home] = []

    def no_network(names: list[str]) -> list[str]:
        raise ServiceUnavailable(f"cannot fetch {names}")

    monkeypatch.setattr(spark_conf, "fetch", no_network)
    monkeypatch.setattr(live, "check_java", lambda: 17)
    monkeypatch.setattr(stack, "up", started.append)

    with pytest.raises(ServiceUnavailable, match="cannot fetch \\['spark'\\]"):
        live.Live(Home(tmp_path), 10.0, 1.0).run()

    assert started == []
