"""Two builds at one time, a build that fails, and days of many years, on the emulator.

The same as on Spark in ``tests/python/spark/test_increment_stops.py`` and ``test_increments.py``.
Here runs are processes of their own, and a server takes their transactions apart.

Fails when on the emulator builds at one time, a `dbt retry` or days that lie far apart leave a
mart unlike a full refresh.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from tests.python.parity.relations import load
from tests.python.parity.standin_stops import StandinStops, assert_all_as_a_full_refresh, do_history
from tests.python.parity.trial import read_standin
from tests.python.spark.test_increment_stops import EVERYTHING, RUN, SALES, WINDOWS

pytestmark = pytest.mark.long

Step = dict[str, Any]

# After a run records its intent and before its rows. Only a run that is asked to waits.
ANNOUNCES = "{%- do record_intent(increment) -%}"
GATE = """{% macro wait_at_gate() -%}
    {%- if env_var("AT_GATE", "") == model.name -%}
        {%- do run_query(in_own_transaction("gate.gate", "select 1")) -%}
    {%- endif -%}
{%- endmacro %}
"""
# More than an increment separates, and days between them, which it leaves as they are.
FAR_DAYS = [(date(2019, 1, 1) + timedelta(days=11 * step)).isoformat() for step in range(120)]
KEPT_DAYS = [(date(2019, 1, 6) + timedelta(days=33 * step)).isoformat() for step in range(40)]
FIRST_KEPT, FIRST_FAR = 20_000, 30_000
SALES_STREAM = "bronze.pagila__sales"
TOGETHER, OVERTAKEN = "both at one time", "the second ends first"
# Of what a right is taken away. Without the second, a run fails when it has deleted rows.
BROKEN = {"delete": SALES, "insert": WINDOWS}


def gated(stops: StandinStops, name: str, closed: list[Step], outs: list[str]) -> None:
    """Runs that announce their increments and write no row until the gate opens.

    Args:
        stops: The history.
        name: Of all this.
        closed: What is done when all of them wait.
        outs: Where each of them writes to.
    """
    file = str(stops.home.path / f"{name}.open")
    at_gate = {"AT_GATE": SALES}
    waiting = [
        {
            "in order": [
                stops.ask("wait", "1"),
                {"run": stops.command(RUN, out=out), "environment": at_gate},
            ]
        }
        for out in outs
    ]
    opened: Step = {"append": {"file": file, "text": "open"}}
    first_round = [stops.ask("wait", str(1 + len(outs))), *closed, opened]
    stops.add(name, together=[{"in order": first_round}, *waiting, stops.ask("hold", file)])


def two_builds(stops: StandinStops) -> None:
    stops.load()
    gated(stops, TOGETHER, [], ["gated", "standin"])
    stops.type(f"{TOGETHER}, next", RUN)
    stops.same(TOGETHER)

    stops.load()
    sale = stops.records.sale(7001, "2026-01-02 10:00:00")
    later: Step = {"commit": SALES_STREAM, "rows": [sale]}
    second: Step = {"run": stops.command(RUN)}
    gated(stops, OVERTAKEN, [later, second], ["gated"])
    stops.mend(OVERTAKEN, 1, 1)
    stops.same(OVERTAKEN, selection=RUN)


def failing(stops: StandinStops) -> None:
    for right, mart in BROKEN.items():
        name = f"no {right}"
        stops.load()
        take = f"revoke {right} on marts.{mart} from millrace"
        stops.add(f"{name}, taken", **stops.ask("sql", take))
        stops.type(name, RUN)
        give = f"grant {right} on marts.{mart} to millrace"
        stops.add(f"{name}, given", **stops.ask("sql", give))
        if mart == SALES:  # which the other retry does not build
            stops.load()
        stops.type(f"{name}, retry", ["retry"])
        stops.same(name, selection=RUN)


def far_days(stops: StandinStops) -> None:
    far = stops.records.one_of_each(FAR_DAYS, FIRST_FAR)[SALES_STREAM]
    # One of them has moved to another day.
    far.append(stops.records.sale(FIRST_KEPT, f"{FAR_DAYS[-1]} 12:00:00"))
    stops.steps.append({"commit": SALES_STREAM, "rows": far})
    stops.type("far days", RUN)
    stops.same("far days", selection=RUN)
    days = stops.home.path / "days.json"
    stops.steps.append(read_standin(stops.home, ["state.touched_days"], days))


def history(stops: StandinStops) -> None:
    building = stops.project / "macros/increments/increment.sql"
    assert ANNOUNCES in building.read_text()
    gated = ANNOUNCES + "{%- do wait_at_gate() -%}"
    building.write_text(building.read_text().replace(ANNOUNCES, gated))
    (stops.project / "macros/overrides/wait_at_gate.sql").write_text(GATE)
    kept = stops.records.one_of_each(KEPT_DAYS, FIRST_KEPT)[SALES_STREAM]
    stops.steps.append({"commit": SALES_STREAM, "rows": kept})
    stops.begin(EVERYTHING)
    two_builds(stops)
    failing(stops)
    far_days(stops)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], StandinStops]:
    return do_history(tmp_path_factory.mktemp("builds"), history, ("whole",))


def test_two_builds_at_one_time_both_end_or_one_stops(
    trial: tuple[dict[str, Any], StandinStops],
) -> None:
    found, _ = trial

    first_round, *runs, held = found[TOGETHER]
    assert_succeeded(first_round[0], held, *(run[0] for run in runs))
    ends = [run[1] for run in runs]
    assert any(end["success"] for end in ends), ends
    for end in ends:
        assert end["success"] or f"another run of dbt built marts.{SALES}" in end["said"]


def test_a_build_that_was_overtaken_stops(trial: tuple[dict[str, Any], StandinStops]) -> None:
    found, _ = trial

    (came, _, second, _), (_, first), held = found[OVERTAKEN]
    assert_succeeded(came, second, held)
    assert not first["success"]
    assert f"another run of dbt built marts.{SALES}" in first["said"]


@pytest.mark.parametrize("right", BROKEN)
def test_a_build_fails_where_a_right_is_missing(
    trial: tuple[dict[str, Any], StandinStops], right: str
) -> None:
    found, _ = trial

    failed = found[f"no {right}"]
    assert not failed["success"]
    assert f"permission denied for table {BROKEN[right]}" in failed["said"]


def test_all_other_commands_succeed(trial: tuple[dict[str, Any], StandinStops]) -> None:
    found, _ = trial

    others = {TOGETHER, OVERTAKEN, *(f"no {right}" for right in BROKEN)}
    assert_succeeded(*(done for name, done in found.items() if name not in others))


def test_all_ends_as_a_full_refresh_on_redshift(trial: tuple[dict[str, Any], StandinStops]) -> None:
    _, stops = trial

    assert len(stops.files) == 5
    assert_all_as_a_full_refresh(stops)


def test_rows_of_other_days_stay(trial: tuple[dict[str, Any], StandinStops]) -> None:
    _, stops = trial

    [affected] = load(stops.home.path / "days.json").values()
    days = {row[1] for row in affected.rows if row[0] == f"marts.{SALES}"}
    assert set(FAR_DAYS) <= days
    sales = load(stops.files["far days"][0])[f"marts.{SALES}"]
    ids = sorted(int(row[0] or 0) for row in sales.rows)
    assert [each for each in ids if each >= FIRST_KEPT] == [
        *range(FIRST_KEPT, FIRST_KEPT + len(KEPT_DAYS)),
        *range(FIRST_FAR, FIRST_FAR + len(FAR_DAYS)),
    ]


def assert_succeeded(*done: dict[str, Any]) -> None:
    assert [each["said"][-3000:] for each in done if not each["success"]] == []
