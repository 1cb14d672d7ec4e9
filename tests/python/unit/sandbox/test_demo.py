"""The demo's programs end with it, and a failing one is shown with its last words."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from sandbox import demo, parts, stack
from sandbox.demo import Demo, DemoFailed
from sandbox.settings import Home


def test_a_failing_program_is_told_with_its_exit_log_and_last_lines(
    tmp_path: Path,
) -> None:
    run = Demo(Home(tmp_path), 1, keep=False)
    code = "import sys; print('working'); print('broke here', file=sys.stderr); sys.exit(3)"

    with pytest.raises(DemoFailed) as caught:
        run._program("ingest", "python", "-c", code)

    log = tmp_path / "logs" / "demo-ingest.log"
    assert f"exited with 3: see {log}" in str(caught.value)
    assert "| broke here" in str(caught.value)
    assert set(log.read_text().splitlines()) == {"working", "broke here"}


def test_programs_see_this_sandbox_and_no_other_dbt_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBT_PROFILES_DIR", "/another/project")
    monkeypatch.setenv("SANDBOX_HOME", "/another/home")
    code = "import json, os; print(json.dumps(dict(os.environ)))"

    printed = Demo(Home(tmp_path), 1, keep=False)._program("x", "python", "-c", code)

    (seen,) = demo._json_lines(printed)

    assert seen["SANDBOX_HOME"] == str(tmp_path)
    assert not [name for name in seen if name.startswith("DBT_")]


def test_ctrl_c_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    child = "import time; time.sleep(60)"
    code = (
        "import os, subprocess, sys, time;"
        f"c = subprocess.Popen([sys.executable, '-c', {child!r}]);"
        f"open({str(pids) + '.new'!r}, 'w').write(f'{{os.getpid()}} {{c.pid}}');"
        f"os.rename({str(pids) + '.new'!r}, {str(pids)!r}); time.sleep(60)"
    )

    def interrupt() -> None:
        while not pids.exists():
            time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt), (tmp_path / "log").open("w") as log:
        demo._run([sys.executable, "-c", code], dict(os.environ), log)

    deadline = time.monotonic() + 10
    while any(_runs(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    return (
        psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    )


@pytest.mark.parametrize(("keep", "stopped"), [(False, [["kafka"]]), (True, [])])
def test_only_what_it_started_is_stopped_and_kept_when_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keep: bool,
    stopped: list[list[str]],
) -> None:
    downs: list[list[str]] = []
    monkeypatch.setattr(stack, "up", lambda _home: ["kafka"])
    monkeypatch.setattr(stack, "down", lambda _home, names: downs.append(list(names)))
    monkeypatch.setattr(parts, "fetch", list)
    for check in ("check_java", "check_spark_home"):
        monkeypatch.setattr(demo, check, lambda: None)

    def fails(_home: Home) -> dict[int, int]:
        raise DemoFailed("the broker went away")

    monkeypatch.setattr(demo, "_end_offsets", fails)

    with pytest.raises(DemoFailed, match="step 3, events: the broker went away"):
        Demo(Home(tmp_path), 1, keep=keep).run()

    assert downs == stopped


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

    line = demo._dbt_line(demo._dbt_results(file))

    assert line.startswith("2 models, 1 seed, 2 data tests, 1 unit test: ")
    assert "1 model error" in line
    assert "1 test warn" in line
    assert demo._dbt_line(Counter({("model", "success"): 1})) == "1 model: all good"


def test_a_dbt_without_results_is_told(tmp_path: Path) -> None:
    with pytest.raises(DemoFailed, match="left no results"):
        demo._dbt_results(tmp_path / "run_results.json")
