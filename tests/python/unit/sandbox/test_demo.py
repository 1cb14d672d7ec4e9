"""What the demo sends, starts, stops and reports."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sandbox.install import parts, spark_conf
from sandbox.processes.locks import claimed
from sandbox.services import stack
from sandbox.settings import Home
from sandbox.streams import declared_topics
from sandbox.tour import demo, demo_marts
from sandbox.tour.demo import Demo, DemoFailed
from sandbox.tour.row_counts import RowCounts
from sandbox.tour.scenarios import SCENARIOS, TICKETS
from spark_ingest.errors import ConfigurationError


def has_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched, and Java and Spark are good."""
    monkeypatch.setattr(parts, "fetch", list)
    monkeypatch.setattr(spark_conf, "bring_spark", lambda: None)
    for check in ("check_java", "check_spark_home"):
        monkeypatch.setattr(demo, check, lambda: None)


@pytest.mark.parametrize(("keep", "stopped"), [(False, [["kafka"]]), (True, [])])
def test_only_what_it_started_is_stopped_and_kept_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool, stopped: list[list[str]]
) -> None:
    downs: list[list[str]] = []
    monkeypatch.setattr(stack, "up", lambda _home, _names, secure: ["kafka"])
    monkeypatch.setattr(stack, "down", lambda _home, names: downs.append(list(names)))
    has_all_parts(monkeypatch)

    def fails(_home: Home, _topic: str) -> dict[int, int]:
        raise DemoFailed("the broker went away")

    monkeypatch.setattr(demo, "end_offsets", fails)
    # dbt has nothing to do until the records are in.
    monkeypatch.setattr(Demo, "_begin_marts", lambda _demo, _lock: nullcontext())

    with pytest.raises(DemoFailed, match="step 3, events: the broker went away"):
        Demo(Home(tmp_path), 1, keep=keep).run()

    assert downs == stopped


class Marts:
    """In place of dbt: says at once what it is listened for, and records what it was sent."""

    def __init__(self, happened: list[str]) -> None:
        self.happened = happened
        account = {"produced": 2, "bronze": 2, "quarantine": 0, "missing": 0, "doubled": 0}
        self.answers: list[dict[str, Any]] = [
            {"event": demo_marts.INGESTED, "rows": 2, "quarantined": 0},
            {"event": demo_marts.BUILT, "left_out": "left out: much"},
            {"event": demo_marts.DOCUMENTED},
            {"event": demo_marts.REPORT, "row_counts": {"a.b": account}, "tops": {"T": "r"}},
        ]

    def __enter__(self) -> Marts:
        return self

    def __exit__(self, *_: object) -> None:
        self.happened.append("dbt ended")

    def send(self, **facts: Any) -> None:
        self.happened.append(f"sent {facts}")

    def hear(self) -> dict[str, Any]:
        heard = self.answers.pop(0)
        self.happened.append(f"heard {heard['event']}")
        return heard


@pytest.mark.parametrize("keep", [False, True])
def test_ingest_hears_when_the_records_are_there_and_services_end_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keep: bool
) -> None:
    happened: list[str] = []

    def program(_demo: Demo, _name: str, *command: str) -> str:
        happened.append(" ".join(command[:2]))
        return json.dumps({"delivered": 1, "seconds": 1})

    monkeypatch.setattr(stack, "up", lambda _home, _names, secure: ["kafka"])
    monkeypatch.setattr(stack, "down", lambda _home, _names: happened.append("down"))
    has_all_parts(monkeypatch)
    monkeypatch.setattr(demo, "end_offsets", lambda _home, _topic: {0: 2})
    monkeypatch.setattr(demo, "dbt_results", lambda _file: Counter())
    monkeypatch.setattr(Demo, "_begin_marts", lambda _demo, _lock: Marts(happened))
    monkeypatch.setattr(Demo, "_program", program)

    Demo(Home(tmp_path), 2, keep=keep).run()

    sent = happened.index("heard ingested") - 1
    assert happened[sent].startswith("sent {'ends': {'pagila.sales': {0: 2}")
    assert set(happened[:sent]) == {"sandbox produce"}
    after = ["heard built", "heard documented", "heard report"]
    meanwhile = [] if keep else ["down"]
    assert happened[sent + 2 :] == [*meanwhile, *after, "dbt ended"]
    shown = capsys.readouterr().out
    assert "all good\n                 left out: much\n" in shown
    assert ("Still running: kafka" in shown) is keep


def test_the_ticket_shop_is_filled_and_then_changed_as_never_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    happened: list[str] = []
    started: list[tuple[str, ...]] = []

    def up(_home: Home, names: tuple[str, ...], secure: bool) -> list[str]:
        started.append(names)
        return ["kafka", "connect"]

    def program(_demo: Demo, _name: str, *command: str) -> str:
        happened.append(" ".join(command))
        shop = {"ems": {"rows_before": {"event": 0}, "rows_written": {"event": 7}}}
        return json.dumps({"databases": shop, "left_out": {"ecomm": "why"}, "changes": 5})

    monkeypatch.setattr(stack, "up", up)
    monkeypatch.setattr(stack, "down", lambda _home, _names: None)
    has_all_parts(monkeypatch)
    monkeypatch.setattr(demo, "end_offsets", lambda _home, _topic: {0: 10})
    monkeypatch.setattr(demo, "dbt_results", lambda _file: Counter())
    monkeypatch.setattr(Demo, "_begin_marts", lambda _demo, _lock: Marts([]))
    monkeypatch.setattr(Demo, "_program", program)

    Demo(Home(tmp_path), 2, keep=False, scenario=TICKETS, scale=0.5).run()

    seed = 1 + 10 * len(TICKETS.streams)
    assert happened == [
        "sandbox produce tickit --json --scale 0.5",
        f"sandbox produce tickit --json --changes {demo.CHANGES} --seed {seed}",
    ]
    assert {"postgres", "connect"} <= set(started[0])
    shown = capsys.readouterr().out
    assert "7 rows in ems, 5 changes; without ecomm" in shown
    assert "[3/6] changes" in shown
    assert "sandbox produce tickit --changes 500" in shown


def test_what_a_demo_shows_are_streams_of_the_project() -> None:
    for scenario in SCENARIOS.values():
        topics = set(declared_topics())
        assert {top.stream for top in scenario.tops} | {*scenario.streams} <= topics


def test_only_a_demo_of_the_usual_size_goes_without_the_compilers() -> None:
    options = demo.spark_settings(is_usual=True)["SPARK_SUBMIT_OPTS"]

    assert "-XX:TieredStopAtLevel=1" in options
    assert "-Dspark.sql.codegen.wholeStage=false" in options
    assert demo.spark_settings(is_usual=False) == {}


def test_every_event_is_sent_and_each_source_gets_as_many() -> None:
    assert demo.shared_out(100_000) == {"pagila": 50_000, "smoothies": 50_000}
    assert demo.shared_out(5) == {"pagila": 3, "smoothies": 2}


def test_what_is_missing_in_one_stream_is_in_its_line_and_in_that_of_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    demo.print_row_counts(
        {
            "pagila.sales": RowCounts(3_000, 2_980, 20, 0, 0),
            "smoothies.products": RowCounts(27, 26, 0, 1, 0),
        }
    )

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["stream", "produced", "bronze", "quarantine", "missing", "doubled"],
        ["pagila.sales", "3,000", "2,980", "20", "0", "0"],
        ["smoothies.products", "27", "26", "0", "1", "0"],
        ["all", "3,027", "3,006", "20", "1", "0"],
    ]


def test_a_lake_at_work_is_refused_with_who_works_there(tmp_path: Path) -> None:
    home = Home(tmp_path)

    with (
        claimed(home.lake_lock, "`sandbox live`"),
        pytest.raises(ConfigurationError, match=r"`sandbox live` \(pid \d+\)"),
    ):
        Demo(home, 2, keep=False).run()

    with claimed(home.lake_lock, "`sandbox demo`"):
        pass


def test_dbt_results_are_counted_by_kind_and_bad_ones_named(tmp_path: Path) -> None:
    file = tmp_path / "run_results.json"
    ended = [
        ("model.millrace.a", "success"),
        ("model.millrace.b", "error"),
        ("seed.millrace.c", "success"),
        ("test.millrace.d", "pass"),
        ("test.millrace.e", "warn"),
        ("unit_test.millrace.f", "pass"),
        ("exposure.millrace.g", "no-op"),
        ("operation.millrace.h", "success"),
    ]
    results = [{"unique_id": name, "status": status} for name, status in ended]
    file.write_text(json.dumps({"results": results}))

    line = demo.dbt_line(demo.dbt_results(file))

    assert line.startswith("2 models, 1 seed, 2 data tests, 1 unit test: ")
    assert "1 model error" in line
    assert "1 test warn" in line
    assert demo.dbt_line(Counter({("model", "success"): 1})) == "1 model: all good"


def test_dbt_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DemoFailed, match="left no results"):
        demo.dbt_results(tmp_path / "run_results.json")
