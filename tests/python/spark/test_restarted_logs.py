"""A log that began anew stops the build until a person says when, and is then in its order.

Fails when a history goes on behind the restart of a log that nobody declared, or orders its
changes wrongly.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import do_steps
from tests.python.world.artists import ARTISTS, PARTITIONS, Artists
from tests.python.world.rounds import NO_TESTS

HISTORY, HELD = "int_moma__artists_history", "int_moma__artists_current"
BUILD = ["build", "--select", f"+{HELD}", *NO_TESTS]
RUN = ["run", "--select", HISTORY]
NOT_DECLARED = "  log_restarts: {}\n"


@pytest.mark.nightly
def test_a_log_that_began_anew_stops_the_build_until_it_is_reported(
    home: Home, tmp_path: Path
) -> None:
    project = copy_project(tmp_path / "project")
    assert NOT_DECLARED in (project / "dbt_project.yml").read_text()
    artists = Artists(Random(1))
    steps: list[dict[str, Any]] = []

    def ingest() -> None:
        rows = [row for at in range(PARTITIONS) for row in artists.deliver(at, 1000)]
        steps.append({"commit": ARTISTS, "rows": rows})

    def dbt(*words: str) -> int:
        steps.append({"dbt": list(words)})
        return len(steps) - 1

    def say(restarts: str, last: str = NOT_DECLARED) -> str:
        line = f"  log_restarts: {{moma: {restarts}}}\n"
        file = str(project / "dbt_project.yml")
        steps.append({"replace": {"file": file, "old": last, "new": line}})
        return line

    def held() -> int:
        rows = f"select artist_id, artist_name from intermediate.{HELD} order by 1"
        steps.append({"sql": rows})
        return len(steps) - 1

    # What an open transaction changed, a snapshot lacks: no restart.
    for number in (1, 2, 3):
        artists.create(number, (f"before {number}", "Mexican"))
    artists.begin_update(3, ("open", "Mexican"))
    artists.snapshot()
    artists.end_updates()
    artists.update(2, ("changed", "Mexican"))
    ingest()
    first = dbt(*BUILD)
    artists.update(1, ("again", "Mexican"))
    artists.send_again(1)
    ingest()
    grown = dbt(*RUN)

    began_at = artists.restart_log()
    artists.update(2, ("anew", "Mexican"))
    artists.delete(3)
    artists.create(4, ("new", "Mexican"))
    ingest()
    stopped = dbt(*RUN)
    stopped_whole = dbt(*RUN, "--full-refresh")
    line = say(f'["{began_at:%Y-%m-%dT%H:%M:%SZ}"]')
    unlike = dbt(*RUN)
    reported = dbt(*BUILD, "--full-refresh")
    after_restart = held()
    artists.update(2, ("and on", "Mexican"))
    ingest()
    goes_on = dbt(*RUN)
    at_last = held()
    say("[]", line)
    ignored = dbt(*BUILD, "--full-refresh")
    out_of_order = held()

    results = do_steps(tmp_path, steps, project)

    for at in (first, grown, reported, goes_on, ignored):
        assert results[at]["success"], results[at]["said"]
    for at in (stopped, stopped_whole):
        assert not results[at]["success"]
        assert "the log of the database moma restarted by" in str(results[at]["said"])
        assert "With the instant in `log_restarts`" in str(results[at]["said"])
    assert "was built with log_restarts null, which" in str(results[unlike]["said"])
    assert results[after_restart] == [["1", "again"], ["2", "anew"], ["4", "new"]]
    assert results[at_last] == [["1", "again"], ["2", "and on"], ["4", "new"]]
    # By the positions alone the old log's last change is the newest.
    assert ["2", "changed"] in results[out_of_order]
