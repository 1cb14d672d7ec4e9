"""PostgreSQL for the emulator: roles, settings, and functions of Redshift.

Its data is disposable: everything in it comes from bronze and from dbt.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from pathlib import Path

from sandbox.services.postgres_programs import programs, run_program
from sandbox.services.unprivileged import give_new_folder
from sandbox.settings import Home

DATABASE = "dev"
USER = "millrace"
OWNER = "stand_in"

# In this order: each depends on the previous ones.
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
    """Create the database; recreate it if the scripts have changed.

    Raises:
        MillraceError: PostgreSQL failed; the message contains its error.
    """
    script = "\n\n".join((_HERE / name).read_text() for name in _SCRIPTS)
    script = script.replace("{{ scan }}", _scan_command(home).replace("'", "''"))
    version = hashlib.sha256(f"{_SETTINGS}{script}".encode()).hexdigest()
    mark = folder / "version"
    if mark.exists() and mark.read_text() == version:
        return
    mark.unlink(missing_ok=True)
    data = folder / "data"
    give_new_folder(data)
    with programs(folder) as programs_folder:
        _fill(programs_folder, data, script)
    mark.write_text(version)


def _fill(programs_folder: Path, data: Path, script: str) -> None:
    make = ["initdb", "--pgdata", str(data), "--username", OWNER, "--no-sync"]
    make += ["--auth", "reject", "--encoding", "UTF8", "--locale", "C"]
    run_program(programs_folder, make)
    with (data / "postgresql.conf").open("a") as file:
        file.write(_SETTINGS)
    # No connections as the owner, who could start programs.
    (data / "pg_hba.conf").write_text(f"host {DATABASE} {USER} 127.0.0.1/32 md5\n")
    alone = ["postgres", "--single", "-j", "-D", str(data)]
    alone += ["-c", "allow_system_table_mods=on", "-c", "exit_on_error=on"]
    run_program(programs_folder, [*alone, "postgres"], f"create database {DATABASE};\n\n")
    run_program(programs_folder, [*alone, DATABASE], script + "\n\n")


def _scan_command(home: Home) -> str:
    """The program that returns the rows of an external table; its names are appended."""
    scan = [sys.executable, "-I", "-S", str(_HERE / "scan.py")]
    return shlex.join([*scan, str(home.ports["redshift-lake"])])
