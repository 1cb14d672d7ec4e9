"""PostgreSQL as the stand-in needs it: made once, started and ended with its server.

Its data are worth nothing: everything in it comes from bronze and from dbt.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.install.parts import component_folder
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError, MillraceError

DATABASE = "dev"
USER = "millrace"
OWNER = "stand_in"
NOBODY = "nobody"
READY_SECONDS = 60.0

# In this order: each uses what those before it make.
_SCRIPTS = ("types.sql", "functions.sql", "objects.sql", "lake.sql", "catalogue.sql")
_HERE = Path(__file__).parent

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
timezone = 'UTC'
log_timezone = 'UTC'
shared_buffers = 64MB
max_connections = 40
max_locks_per_transaction = 512
# The one way that both Redshift's driver and PostgreSQL know.
password_encryption = 'md5'
jit = off
# A crash may cost all of it: nothing here is kept anywhere else.
fsync = off
synchronous_commit = off
full_page_writes = off
"""


def initialise(home: Home, folder: Path) -> None:
    """Make the database; one that was made of other scripts is recreated.

    Args:
        home: The sandbox, for the port of the server that reads the lake.
        folder: The service's folder.

    Raises:
        MillraceError: PostgreSQL refuses; the message has its words.
    """
    script = "\n\n".join((_HERE / name).read_text() for name in _SCRIPTS)
    script = script.replace("{{ scan }}", _scan_command(home).replace("'", "''"))
    version = hashlib.sha256(f"{_SETTINGS}{script}".encode()).hexdigest()
    mark = folder / "version"
    if mark.exists() and mark.read_text() == version:
        return
    mark.unlink(missing_ok=True)
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True, mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(data, NOBODY)
    with programs(folder) as programs_folder:
        _fill(programs_folder, data, script)
    mark.write_text(version)


def _fill(programs_folder: Path, data: Path, script: str) -> None:
    make = ["initdb", "--pgdata", str(data), "--username", OWNER, "--no-sync"]
    make += ["--auth", "reject", "--encoding", "UTF8", "--locale", "C"]
    _run(programs_folder, make)
    with (data / "postgresql.conf").open("a") as file:
        file.write(_SETTINGS)
    # Nobody connects as the owner, who could start programs.
    (data / "pg_hba.conf").write_text(f"host {DATABASE} {USER} 127.0.0.1/32 md5\n")
    alone = ["postgres", "--single", "-j", "-D", str(data)]
    alone += ["-c", "allow_system_table_mods=on", "-c", "exit_on_error=on"]
    _run(programs_folder, [*alone, "postgres"], f"create database {DATABASE};\n\n")
    _run(programs_folder, [*alone, DATABASE], script + "\n\n")


@contextmanager
def programs(folder: Path) -> Iterator[Path]:
    """The folder of PostgreSQL's programs, where whoever runs them may look.

    Root does not run them: `nobody` does, who must be let into all folders above. So
    root's are a copy, as long as they are needed; one that a killed server has left is
    removed.

    Args:
        folder: The service's folder.

    Raises:
        ConfigurationError: They have not been fetched.
    """
    fetched = component_folder("postgres")
    if not (fetched / "bin" / "postgres").is_file():
        raise ConfigurationError(
            "the part postgres is not complete: `sandbox parts --check`"
        )
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


def start(home: Home, folder: Path, programs_folder: Path) -> subprocess.Popen[bytes]:
    """Start PostgreSQL as a child of this process, and wait until it takes connections.

    Args:
        home: The sandbox, for the port.
        folder: The service's folder.
        programs_folder: From ``programs``.

    Raises:
        MillraceError: It ended, or took too long; its words are in the service's log.
    """
    port = home.ports["redshift-postgres"]
    program = [str(programs_folder / "postgres"), "-D", str(folder / "data")]
    process = subprocess.Popen(
        _as_somebody([*program, "-p", str(port)]),
        stdin=subprocess.DEVNULL,
        env=_environment(),
    )
    begun = time.monotonic()
    while process.poll() is None and time.monotonic() - begun < READY_SECONDS:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process
        except OSError:
            time.sleep(0.05)
    end(process)
    raise MillraceError(
        "PostgreSQL did not start: see above, then `sandbox up redshift`"
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End it: connections first, then by force."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _run(programs_folder: Path, command: list[str], script: str = "") -> None:
    done = subprocess.run(
        _as_somebody([str(programs_folder / command[0]), *command[1:]]),
        input=script,
        capture_output=True,
        text=True,
        env=_environment(),
        check=False,
    )
    said = done.stderr.strip()
    if done.returncode != 0 or "ERROR:" in said:
        error = next((line for line in said.splitlines() if "ERROR:" in line), said)
        raise MillraceError(f"{command[0]} failed: {error[-1000:]}")


def _as_somebody(command: list[str]) -> list[str]:
    """The command as PostgreSQL wants to be run: not by root, and not longer than us.

    `nobody` may enter the folders above its data all the same.
    """
    if sys.platform != "linux":
        return command
    rights = []
    if os.geteuid() == 0:
        group = str(pwd.getpwnam(NOBODY).pw_gid)
        rights = ["--reuid", NOBODY, "--regid", group, "--clear-groups"]
        rights += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", *rights, "--pdeathsig", "INT", *command]


def _environment() -> dict[str, str]:
    """Without what another PostgreSQL of this user is told."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith("PG")
    }


def _scan_command(home: Home) -> str:
    """The program that gives an external table's rows, to which its names are added."""
    scan = [sys.executable, "-I", "-S", str(_HERE / "scan.py")]
    return shlex.join([*scan, str(home.ports["redshift-lake"])])
