"""The commands of every day on the emulator, each typed by itself.

Fails when on the emulator one of dbt's commands needs more before it than the commands that a
newcomer types.
"""

from __future__ import annotations

import pytest

from sandbox.settings import PROJECT
from tests.python.parity.standin_stops import StandinStops, do_history
from tests.python.parity.trial import external_schema
from tests.python.spark.bronze_tables import tables_made
from tests.python.spark.test_each_command import COMMANDS, FRESHNESS, SILENT, STEP, TOO_EARLY

pytestmark = pytest.mark.nightly


def history(stops: StandinStops) -> None:
    stops.load()
    stops.sql(tables_made(PROJECT))
    stops.steps.append(external_schema(stops.home, stops.project))
    for words in TOO_EARLY:
        stops.type(f"early {' '.join(words)}", words)
    for number, words in enumerate(COMMANDS, 1):
        command = stops.command(words)
        if words == ["debug"]:  # It writes nothing.
            command = command[: command.index("--target-path")]
        if words == ["retry"]:  # With nothing to retry dbt warns, which is as it should be.
            command.remove("--warn-error")
        stops.add(f"{number} dbt {' '.join(words)}", run=command)
    stops.sql(SILENT)
    stops.type("silent", FRESHNESS)


def test_each_command_works_by_itself(tmp_path_factory: pytest.TempPathFactory) -> None:
    found, _ = do_history(tmp_path_factory.mktemp("each command"), history, ())

    assert not found.pop("silent")["success"]
    early = {name: of for name, of in found.items() if name.startswith("early")}
    assert len(found) == len(TOO_EARLY) + len(COMMANDS)
    assert {
        name: of["said"] for name, of in early.items() if of["success"] or STEP not in of["said"]
    } == {}
    assert {
        name: of["said"] for name, of in found.items() if name not in early and not of["success"]
    } == {}
