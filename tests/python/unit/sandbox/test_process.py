"""A process is ours only while pid, start time and command say so, and ends whole."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sandbox.processes import process
from sandbox.processes.process import ProcessRecord

SLEEP = [sys.executable, "-c", "print('awake', flush=True); import time; time.sleep(60)"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "a service"
    process.stop(tmp_path / "a service", grace=0.2)


def start(folder: Path, command: list[str], mark: str = "it /a home") -> ProcessRecord:
    return process.start("it", command, folder, folder / "it.log", {"it": 1234}, mark)


def wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + 20
    while text not in log.read_text():
        assert time.monotonic() < deadline, f"{text!r} never came: {log.read_text()}"
        time.sleep(0.01)


def test_a_started_process_is_recorded_and_known_again(folder: Path) -> None:
    record = start(folder, SLEEP)

    assert process.read_record(folder) == record
    assert process.is_alive(record)
    assert os.getpgid(record.pid) == record.pid != os.getpgid(0)


def test_stopping_ends_the_process_and_forgets_it(folder: Path) -> None:
    record = start(folder, SLEEP)

    assert process.stop(folder)

    assert not process.is_alive(record)
    assert process.read_record(folder) is None
    assert not process.stop(folder)


def test_one_that_ignores_the_polite_signal_is_killed_with_its_children(folder: Path) -> None:
    child = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    code = (
        "import signal, subprocess, sys, time; signal.signal(15, signal.SIG_IGN);"
        f"p = subprocess.Popen([sys.executable, '-c', {child!r} + '; time.sleep(60)']);"
        "print('child', p.pid, flush=True); time.sleep(60)"
    )
    record = start(folder, [sys.executable, "-c", code])
    wait_for(folder / "it.log", "child")
    wait_for(folder / "it.log", "1\n")
    line = next(x for x in (folder / "it.log").read_text().splitlines() if "child" in x)
    child_pid = int(line.split()[1])

    process.stop(folder, grace=0.3)

    assert not process.is_alive(record)
    deadline = time.monotonic() + 10
    while _runs(child_pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child_pid)


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_reused_pid_is_not_ours_and_is_never_ended(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as foreign:
        record = start(folder, SLEEP)
        os.killpg(record.pid, signal.SIGKILL)
        stale = replace(record, pid=foreign.pid, created=record.created - 3600)
        (folder / "process.json").write_text(json.dumps(stale.__dict__))

        assert not process.is_alive(stale)
        assert not process.stop(folder)
        assert foreign.poll() is None
        foreign.kill()


def test_a_stepped_clock_does_not_lose_the_process(folder: Path) -> None:
    record = start(folder, SLEEP)
    wait_for(folder / "it.log", "awake")

    assert process.is_alive(replace(record, created=record.created - 3600))


def test_the_tail_is_of_this_run_only(folder: Path) -> None:
    start(folder, [sys.executable, "-c", "print('first run')"])
    wait_for(folder / "it.log", "first run")
    process.stop(folder)
    record = start(folder, [sys.executable, "-c", "print('a'); print('b'); print('c')"])
    wait_for(folder / "it.log", "c\n")

    assert process.tail(record, 2) == ["b", "c"]
    assert process.tail(record) == ["a", "b", "c"]


def test_a_port_in_use_is_reported_with_pid_name_and_sandbox(folder: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    code = f"""if True:
        import socket, time
        s = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen()
        print('listening', flush=True); time.sleep(60)"""
    assert process.port_is_free(port)
    record = start(folder, [sys.executable, "-c", code], mark="kafka /other/sand box")
    wait_for(folder / "it.log", "listening")

    assert not process.port_is_free(port)
    holder = process.port_holder(port)

    assert f"pid {record.pid} (" in holder
    assert holder.endswith("the kafka of the sandbox in /other/sand box")


def test_an_unreadable_record_counts_as_none(folder: Path) -> None:
    folder.mkdir()
    (folder / "process.json").write_text('{"pid": 1}')

    assert process.read_record(folder) is None


def test_a_port_that_is_let_go_of_in_time_becomes_free() -> None:
    holder = socket.create_server(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    assert not process.becomes_free(port, 0)
    letting_go = threading.Timer(0.3, holder.close)
    letting_go.start()

    assert process.becomes_free(port, 10)
    letting_go.join()
