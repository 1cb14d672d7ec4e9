"""How long changes waited, and how the docs show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.capture.results import Capture, Steady, results_of
from bench.capture.waits import (
    COMMIT_ID,
    Change,
    Round,
    Waits,
    to_bronze,
    to_current,
    to_live,
    visible,
)
from bench.ingest.watch import Seen
from bench.report.page import PAGE, with_results
from bench.report.results import Results
from tests.python.unit.bench.measured import about, drawn_twice

STREAM = "moma.artists"


def seen(at: float, commit_id: int) -> Seen:
    return Seen(at, commit_id, 0, {COMMIT_ID: str(commit_id)})


def change(at: float, commit_id: int, count: int = 1) -> Change:
    return Change(STREAM, commit_id, at, count)


def test_commits_that_one_look_finds_are_seen_with_the_newest() -> None:
    assert visible([seen(5.0, 1), seen(8.0, 3)]) == {1: 5.0, 2: 8.0, 3: 8.0}


def test_a_snapshot_that_is_no_commit_of_ours_shows_nothing_new() -> None:
    lease = Seen(6.0, 99, 0, {})

    assert visible([seen(5.0, 1), lease, seen(7.0, 2)]) == {1: 5.0, 2: 7.0}


def test_each_change_waits_from_its_own_commit_to_that_of_bronze() -> None:
    found = to_bronze([change(4.0, 1, count=99), change(1.0, 2)], {STREAM: {1: 5, 2: 8}})

    assert (found.p50, found.p95, found.p99) == (1.0, 1.0, 1.0)
    assert to_bronze([change(1.0, 2)], {STREAM: {2: 8.0}}).p50 == 7.0


def test_a_change_is_in_the_state_when_the_first_round_that_read_it_has_ended() -> None:
    rounds = [Round(10.0, 3.0, {STREAM: 1}), Round(20.0, 3.0, {STREAM: 4})]

    assert to_current([change(8.0, 1)], rounds).p50 == 2.0
    assert to_current([change(8.0, 2)], rounds).p50 == 12.0


def test_a_change_that_no_round_has_read_is_an_error() -> None:
    with pytest.raises(IndexError):
        to_current([change(8.0, 2)], [Round(10.0, 3.0, {STREAM: 1})])


def test_an_answer_is_asked_for_when_the_change_is_in_bronze() -> None:
    seen, live = {STREAM: {1: 9.0, 2: 9.5}}, [change(8.0, 1), change(8.0, 2)]
    # The first was asked for before, the second lacks a change.
    early, lacking = Round(11.0, 3.0, {STREAM: 2}), Round(12.0, 1.0, {STREAM: 1})
    answers = [early, lacking, Round(17.0, 2.0, {STREAM: 2})]

    assert to_live(live[:1], seen, answers).p50 == 2.0
    assert to_live(live[1:], seen, answers).p50 == 3.5
    with pytest.raises(StopIteration):
        to_live(live[1:], seen, answers[:2])


def measured() -> Results:
    waits = Waits(p50=1.0, p95=2.0, p99=3.0, hundredths=[0.1, 1.0, 3.0])
    steady = Steady(
        rate=200, changes=60_000, bronze=waits, live=waits, answer_seconds=0.9,
        current=waits, rounds=9, round_seconds=8.5, cores=1.5,
    )  # fmt: skip
    capture = Capture("1s", 4500, steady, 30_000, {"bronze": 20.0})
    return results_of(capture, about("capture", minutes=9))


def test_the_page_shows_each_way_and_the_burst() -> None:
    shown = with_results(PAGE.read_text(), measured())

    assert "| an answer of the live view | 1.0 | 2.0 | 3.0 |" in shown
    assert "| current state | 1.0 | 2.0 | 3.0 |" in shown
    assert "| bronze | 20 | 1,500 |" in shown
    assert "60,000 changes at 200 a second on 4,500 rows" in shown


def test_the_same_results_give_the_same_plot(tmp_path: Path) -> None:
    one, other = drawn_twice(measured(), tmp_path)

    assert one == other
