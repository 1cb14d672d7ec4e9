"""Background processes with a record file, so that later commands can find and stop them.

A process is recorded in ``<services>/<name>/process.json``. Pid, start time and command must
match the record, so that a process with a reused pid is never mistaken for it or killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

MARK = "MILLRACE_SERVICE"
TAIL_LINES = 15
GRACE_SECONDS = 30.0
_LOG_LIMIT_BYTES = 20_000_000
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class ProcessRecord:
    """The record of a started process.

    Attributes:
        name: The service.
        pid: Its process id, also the id of its process group and session.
        created: Its start time as reported by the system, in seconds since 1970.
        ports: TCP port on 127.0.0.1 by listener name.
        log: The file with its output.
        log_start: Byte offset in the log at which the output of this run begins.
    """

    name: str
    pid: int
    created: float
    command: list[str]
    ports: dict[str, int]
    log: str
    log_start: int


def start(
    name: str, command: list[str], folder: Path, log: Path, ports: Mapping[str, int], mark: str
) -> ProcessRecord:
    """Start a program in its own session, its output appended to a log, and record it.

    Args:
        folder: The service's folder: working directory and place of the record.
        mark: The value of ``MILLRACE_SERVICE`` in its environment, which shows the sandbox
            that the process belongs to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as output:
        log_start = output.tell()
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, MARK: mark},
        )
    try:
        created = psutil.Process(process.pid).create_time()
        record = ProcessRecord(
            name, process.pid, created, command, dict(ports), str(log), log_start
        )
        _write(folder, record)
    except BaseException:  # do not leave an unrecorded process
        os.killpg(process.pid, signal.SIGKILL)
        raise
    # Otherwise Popen warns when it is garbage collected while its process runs, as intended.
    process.returncode = 0
    return record


def read_record(folder: Path) -> ProcessRecord | None:
    """The record of the service in that folder, whether its process is running or not."""
    try:
        return ProcessRecord(**json.loads((folder / "process.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def is_alive(record: ProcessRecord) -> bool:
    """Whether the recorded process is running, and its pid was not reused."""
    try:
        process = psutil.Process(record.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            _reap(record.pid)
            return False
        # A clock step changes the reported start time, but not the command.
        return (
            abs(process.create_time() - record.created) < 2 or process.cmdline() == record.command
        )
    except psutil.Error:
        return False


def stop(folder: Path, grace: float = GRACE_SECONDS) -> bool:
    """Stop the recorded process and its group with SIGTERM, then SIGKILL; delete the record.

    ``grace`` is the time in seconds before SIGKILL. Returns whether the process was running.
    """
    record = read_record(folder)
    alive = record is not None and is_alive(record)
    if record is not None and alive:
        _signal_group(record.pid, signal.SIGTERM)
        if not _wait_until_gone(record, grace):
            _signal_group(record.pid, signal.SIGKILL)
            _wait_until_gone(record, 10)
    (folder / "process.json").unlink(missing_ok=True)
    return alive


def end_group(leader: int, grace: float) -> None:
    """Stop a child process that is a group leader, and its group.

    ``leader`` is the child's pid, which must not have been waited for; ``grace`` is the time in
    seconds between SIGTERM and SIGKILL.
    """
    _signal_group(leader, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while not _has_ended(leader) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal_group(leader, signal.SIGKILL)


def end_left_over(leader: int, grace: float) -> None:
    """Wait for the group of a child that has exited; kill the remaining processes.

    ``leader`` is the pid of the child, which must have been waited for; ``grace`` is the time in
    seconds for the others to exit, such as a JVM that deletes its files.
    """
    deadline = time.monotonic() + grace
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(leader, 0)
            time.sleep(0.05)
        os.killpg(leader, signal.SIGKILL)


def tail(record: ProcessRecord, lines: int = TAIL_LINES) -> list[str]:
    """The last lines that this run wrote to its log."""
    try:
        with Path(record.log).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(record.log_start, size - 64_000))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]


def port_is_free(port: int) -> bool:
    """Whether the port is free on 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def becomes_free(port: int, seconds: float) -> bool:
    """Whether the port is free, or becomes free within some seconds."""
    end = time.monotonic() + seconds
    while not port_is_free(port):
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def accepts(port: int) -> bool:
    """Whether a server accepts connections on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def port_holder(port: int) -> str:
    """A description of the process that listens on the port: pid, name and sandbox."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:  # macOS allows it for root only
        connections = []
    for connection in connections:
        address = connection.laddr
        if connection.status != psutil.CONN_LISTEN or not address or address.port != port:
            continue
        if connection.pid is None:
            return "a program of another user"
        return _describe(connection.pid)
    return "another program"


def _describe(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        name = f"pid {pid} ({process.name()})"
        mark = process.environ().get(MARK)
    except psutil.Error:
        return f"pid {pid}"
    if mark is None:
        return name
    service, _, home = mark.partition(" ")
    return f"{name}, the {service} of the sandbox in {home}"


def _has_ended(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _write(folder: Path, record: ProcessRecord) -> None:
    new = folder / "process.json.new"
    new.write_text(json.dumps(asdict(record), indent=1) + "\n")
    new.replace(folder / "process.json")


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _wait_until_gone(record: ProcessRecord, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(record):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _reap(pid: int) -> None:
    """Reap a dead child of this process."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
