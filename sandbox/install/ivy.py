"""Run the Ivy that PySpark brings, and show what it does."""

from __future__ import annotations

import platform
import re
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sandbox.ui import err, say
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable
from spark_ingest.lake.preflight import java_program, pyspark_folder

ATTEMPTS = 2
PLAIN_INTERVAL_SECONDS = 5.0

_NETWORK = re.compile(
    r"\w*(?:UnknownHost|Connect|NoRouteToHost|SocketTimeout|Socket|SSL\w*)Exception"
    r"|Network is unreachable|Server access error|Host \S+ not found",
    re.IGNORECASE,
)
_UNRESOLVED = re.compile(r"::\s+(\S+#\S+;\S+): (.+?)\s*$", re.MULTILINE)
_FAILED = re.compile(r"\[FAILED\s*\]\s+(\S+?)(?:!|:)(.*)$", re.MULTILINE)


class _Count:
    """What Ivy has printed so far; written by the reader thread, read by the progress display."""

    def __init__(self) -> None:
        self.output: list[str] = []
        self.found = 0
        self.fetched = 0

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.output.append(line)
            if line.startswith("\tfound "):
                self.found += 1
            elif "[SUCCESSFUL ]" in line:
                self.fetched += 1


def run_ivy(
    names: list[str], ivy_file: Path, settings: Path, cache: Path, into: Path, log: Path, lock: int
) -> None:
    """Resolve and fetch the named configurations into ``into/<name>/``.

    Args:
        ivy_file: The module with the coordinates.
        settings: Ivy's settings: the repositories.
        cache: Ivy's own cache; finished artifacts are taken from it.
        log: Gets all that Ivy prints.
        lock: File descriptor of a lock on the cache, which Ivy shall hold until it
            ends, even when this process is killed before.

    Raises:
        ConfigurationError: The disk is full, or this Python has no Ivy.
        ServiceUnavailable: The repository cannot be reached or lacks something.
    """
    jars = sorted((pyspark_folder() / "jars").glob("ivy-*.jar"))
    if not jars:
        raise ConfigurationError(f"no ivy-*.jar in {pyspark_folder()}/jars: run `make install`")
    # fmt: off
    command = [
        str(java_program()), "-Xmx512m", f"-Dmillrace.platform={_platform()}",
        "-jar", str(jars[-1]),
        "-settings", str(settings), "-ivy", str(ivy_file), "-cache", str(cache),
        "-confs", *names,
        "-retrieve", f"{into}/[conf]/[artifact]-[revision].[ext]",
    ]
    # fmt: on
    say(f"Fetching {', '.join(names)} from Maven Central, once")
    for attempt in range(1, ATTEMPTS + 1):
        code, output = _run(command, cache, log, lock)
        if code == 0:
            return
        failure = explain(output, log)
        if attempt == ATTEMPTS or not isinstance(failure, ServiceUnavailable):
            raise failure
        say("  that failed; trying once more")


def _platform() -> str:
    """This machine, as the archives for one platform name it: ``linux-amd64``."""
    machine = platform.machine().lower()
    processor = "arm64v8" if machine in {"arm64", "aarch64"} else "amd64"
    return f"{platform.system().lower()}-{processor}"


def _run(command: list[str], cache: Path, log: Path, lock: int) -> tuple[int, str]:
    """Ivy's exit code and its output."""
    count = _Count()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(lock,),
    )
    reader = threading.Thread(target=count.read, args=(process.stdout,))
    reader.start()
    try:
        _show(process, count, cache)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
    output = "".join(count.output)
    with suppress(OSError):  # a full disk, which Ivy's output shows
        log.write_text(output)
    return process.returncode, output


def _show(process: subprocess.Popen[str], count: _Count, cache: Path) -> None:
    """A bar on a terminal, a line now and then elsewhere, until Ivy ends."""
    before = _megabytes(cache)  # temporary files may make it shrink again
    if not err.is_terminal:
        last = time.monotonic()
        while _runs(process):
            if time.monotonic() - last >= PLAIN_INTERVAL_SECONDS:
                last = time.monotonic()
                say(f"  {_state(count)}, {_megabytes(cache, before):.0f} MB")
        say(f"  {count.fetched} files fetched, {_megabytes(cache, before):.0f} MB")
        return
    columns = (
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files, {task.fields[megabytes]:.0f} MB"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err) as progress:
        task = progress.add_task("resolving", total=None, megabytes=0.0)
        while _runs(process):
            progress.update(
                task,
                description="fetching" if count.fetched else "resolving",
                # Until the first file arrives Ivy is still finding out what it needs.
                total=count.found if count.fetched else None,
                completed=count.fetched or count.found,
                megabytes=_megabytes(cache, before),
            )
        progress.update(task, total=count.fetched or 1, completed=count.fetched or 1)


def _runs(process: subprocess.Popen[str]) -> bool:
    try:
        process.wait(timeout=0.25)
    except subprocess.TimeoutExpired:
        return True
    return False


def _state(count: _Count) -> str:
    return f"{count.fetched} files" if count.fetched else f"resolving, {count.found} modules"


def _megabytes(folder: Path, less: float = 0.0) -> float:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # Ivy renames a finished .part file
            continue
    return max(0.0, total / 1e6 - less)


def explain(text: str, log: Path) -> MillraceError:
    """Ivy's failure as one line."""
    if "No space left on device" in text:
        return ConfigurationError(
            "the disk is full: make room and run it again; it goes on where it stopped"
        )
    network = _NETWORK.search(text)
    if network:
        return ServiceUnavailable(
            f"Maven Central cannot be reached ({network[0]}): check the network (behind a"
            " proxy: JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=H -Dhttps.proxyPort=N') and run it"
            f" again; it goes on where it stopped (log: {log})"
        )
    lacking = _UNRESOLVED.search(text) or _FAILED.search(text)
    what = f"{lacking[1]}: {lacking[2].strip()}" if lacking else "Ivy failed"
    return ServiceUnavailable(f"{what}; the log is {log}")
