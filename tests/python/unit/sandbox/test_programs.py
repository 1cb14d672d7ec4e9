"""Programs end with the one that started them, and a failing one is shown with its words."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.processes.programs import (
    Dialogue,
    ProgramFailed,
    Running,
    json_lines,
    run_group,
    run_to_end,
)
from sandbox.settings import Home
from tests.python.programs import assert_gone

# Starts a child, prints both pids, then waits for its exit.
_FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open("{pids}.new", "w").write(f"{{os.getpid()}} {{child.pid}}")
os.rename("{pids}.new", "{pids}")
{then}
"""


@pytest.fixture
def lock() -> Iterator[int]:
    """A file descriptor to inherit."""
    number = os.open(os.devnull, os.O_RDONLY)
    yield number
    os.close(number)


def test_a_failed_program_is_reported_with_its_exit_log_and_last_lines(tmp_path: Path) -> None:
    code = "import sys; print('working'); print('broke here', file=sys.stderr); sys.exit(3)"
    log = tmp_path / "logs" / "demo-ingest.log"

    with pytest.raises(ProgramFailed) as caught:
        run_to_end(Home(tmp_path), log, "python", "-c", code)

    assert f"exited with 3: see {log}" in str(caught.value)
    assert "| broke here" in str(caught.value)
    assert set(log.read_text().splitlines()) == {"working", "broke here"}


def test_programs_see_this_sandbox_and_no_other_dbt_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBT_PROFILES_DIR", "/another/project")
    monkeypatch.setenv("DBT_TARGET_PATH", "/another/target")
    monkeypatch.setenv("SANDBOX_HOME", "/another/home")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xmx1g")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    settings = {"SPARK_SUBMIT_OPTS": "-Xmx2g", "MADE_BY": "a test"}

    printed = run_to_end(Home(tmp_path), tmp_path / "log", "python", "-c", code, settings=settings)

    (seen,) = json_lines(printed)
    # What somebody has set for all programs stays.
    assert (seen["SPARK_SUBMIT_OPTS"], seen["MADE_BY"]) == ("-Xmx1g", "a test")
    assert seen["SANDBOX_HOME"] == str(tmp_path)
    # Where dbt writes is no setting of what it does.
    assert [name for name in seen if name.startswith("DBT_")] == ["DBT_TARGET_PATH"]


def test_ctrl_c_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = _FAMILY.format(pids=pids, then="time.sleep(60)")

    def interrupt() -> None:
        while not pids.exists():
            time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt), (tmp_path / "log").open("wb") as log:
        run_group([sys.executable, "-c", code], dict(os.environ), log)

    assert_gone(pids)


def test_a_running_program_is_read_line_by_line_and_ends_when_asked(
    tmp_path: Path, lock: int
) -> None:
    code = (
        "import json, time\n"
        "print('plain text')\n"
        "print(json.dumps({'round': 1}))\n"
        "print('{\"round\"', end='', flush=True)\n"
        "try:\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print(': 2}', flush=True)\n"
    )
    running = Running(
        "rounds", [sys.executable, "-c", code], Home(tmp_path), tmp_path / "logs" / "x.log", lock
    )
    while '{"round"' not in running.log.read_text().splitlines()[-1:]:
        time.sleep(0.02)

    first = running.messages()
    running.check()
    running.ask_to_end(signal.SIGINT)

    assert running.end(grace=10) == 0
    assert first == [{"round": 1}]
    assert running.messages() == [{"round": 2}]


def test_an_exited_program_is_reported_on_one_line_with_its_log(tmp_path: Path, lock: int) -> None:
    code = "import sys; print('{}'); print('no  lake\\n', file=sys.stderr); sys.exit(2)"
    log = tmp_path / "x.log"
    running = Running("ingest", [sys.executable, "-c", code], Home(tmp_path), log, lock)

    assert running.end(grace=10) == 2
    with pytest.raises(ProgramFailed) as caught:
        running.check()
    message = f"ingest ended with exit code 2: no lake; its log is {log}"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("then", "grace", "code"), [("sys.exit(0)", 10.0, 0), ("time.sleep(60)", 0.1, None)]
)
def test_nothing_is_left_of_a_program_that_ended_or_would_not(
    tmp_path: Path,
    lock: int,
    monkeypatch: pytest.MonkeyPatch,
    then: str,
    grace: float,
    code: int | None,
) -> None:
    monkeypatch.setattr("sandbox.processes.programs._STOP_SECONDS", 0.2)
    pids = tmp_path / "pids"
    command = [sys.executable, "-c", _FAMILY.format(pids=pids, then=then)]
    running = Running("family", command, Home(tmp_path), tmp_path / "x.log", lock)
    while not pids.exists():
        time.sleep(0.02)

    assert running.end(grace) == code

    assert_gone(pids)


def dialogue(tmp_path: Path, lock: int, code: str) -> Dialogue:
    command = [sys.executable, "-u", "-c", f"import json, sys, time\n{code}"]
    return Dialogue("dialogue", command, Home(tmp_path), tmp_path / "log", lock)


def test_a_dialogue_exchanges_messages_apart_from_the_log(tmp_path: Path, lock: int) -> None:
    code = (
        "print('working', file=sys.stderr)\n"
        "for line in sys.stdin: print(json.dumps({'twice': 2 * json.loads(line)['n']}))"
    )

    with dialogue(tmp_path, lock, code) as child:
        child.send(n=2)
        child.send(n=3)
        heard = [child.hear(), child.hear()]

    assert heard == [{"twice": 4}, {"twice": 6}]
    assert (tmp_path / "log").read_text() == "working\n"


def test_a_dialogue_that_exits_early_is_reported_with_its_exit_log_and_last_lines(
    tmp_path: Path, lock: int
) -> None:
    code = "print('broke here', file=sys.stderr); sys.exit(3)"

    def listen() -> None:
        with dialogue(tmp_path, lock, code) as child:
            child.send(n=2)
            child.hear()

    with pytest.raises(ProgramFailed) as caught:
        listen()

    assert f"dialogue exited with 3: see {tmp_path / 'log'}" in str(caught.value)
    assert "| broke here" in str(caught.value)


def test_a_dialogue_that_fails_at_the_end_is_an_error(tmp_path: Path, lock: int) -> None:
    with (
        pytest.raises(ProgramFailed, match="exited with 4"),
        dialogue(tmp_path, lock, "sys.stdin.read(); sys.exit(4)"),
    ):
        pass


def test_a_dialogue_and_what_it_started_end_with_our_work(tmp_path: Path, lock: int) -> None:
    pids = tmp_path / "pids"
    code = _FAMILY.format(pids=pids, then="time.sleep(60)")

    def interrupted() -> None:
        with dialogue(tmp_path, lock, code):
            while not pids.exists():
                time.sleep(0.05)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert_gone(pids)
