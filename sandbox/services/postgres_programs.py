"""Run PostgreSQL's programs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.install.parts import component_folder
from sandbox.services.unprivileged import as_somebody, run_as_somebody
from spark_ingest.errors import ConfigurationError, MillraceError

READY_SECONDS = 60.0


@contextmanager
def programs(folder: Path) -> Iterator[Path]:
    """The folder of PostgreSQL's programs, readable for the user that runs them.

    PostgreSQL refuses to run as root, so `nobody` runs it and needs access to all parent
    folders. For root this is a temporary copy; a copy left by a killed server is removed.

    Raises:
        ConfigurationError: They have not been downloaded.
    """
    fetched = component_folder("postgres")
    if not (fetched / "bin" / "postgres").is_file():
        raise ConfigurationError("the part postgres is not complete: `sandbox parts --check`")
    if os.geteuid() != 0:
        yield fetched / "bin"
        return
    noted = folder / "programs"
    if noted.exists():
        shutil.rmtree(noted.read_text(), ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="millrace-postgres-") as copy:
        noted.write_text(copy)
        shutil.copytree(fetched, copy, dirs_exist_ok=True, symlinks=True)
        Path(copy).chmod(0o755)
        yield Path(copy) / "bin"
    noted.unlink(missing_ok=True)


def start(service: str, port: int, data: Path, programs_folder: Path) -> subprocess.Popen[bytes]:
    """Start PostgreSQL as a child process, and wait until it accepts connections.

    ``programs_folder`` is from ``programs``.

    Raises:
        MillraceError: It exited, or took too long; see the service's log.
    """
    program = [str(programs_folder / "postgres"), "-D", str(data), "-p", str(port)]
    process = subprocess.Popen(
        as_somebody(program, dies_with_us=True), stdin=subprocess.DEVNULL, env=_environment()
    )
    begun = time.monotonic()
    while process.poll() is None and time.monotonic() - begun < READY_SECONDS:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process
        except OSError:
            time.sleep(0.05)
    end(process)
    raise MillraceError(f"PostgreSQL did not start: see above, then `sandbox up {service}`")


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop it: fast shutdown first, then kill it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_program(programs_folder: Path, command: list[str], script: str = "") -> None:
    """Run one of its programs.

    Raises:
        MillraceError: It failed; the message contains its error.
    """
    program = [str(programs_folder / command[0]), *command[1:]]
    done = run_as_somebody(program, _environment(), script)
    output = done.stderr.strip()
    if done.returncode != 0 or "ERROR:" in output:
        error = next((line for line in output.splitlines() if "ERROR:" in line), output)
        raise MillraceError(f"{command[0]} failed: {error[-1000:]}")


def _environment() -> dict[str, str]:
    """The environment without the variables of other PostgreSQL clients."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
