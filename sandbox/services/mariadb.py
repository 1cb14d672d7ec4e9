"""MariaDB with change data capture: its binary log has full row images."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.install.parts import component_folder
from sandbox.services.captured_databases import MARIADB_DATABASE, password, schema_text
from sandbox.services.service import Service
from sandbox.services.unprivileged import as_somebody, give_new_folder, run_as_somebody
from sandbox.settings import Home
from spark_ingest.errors import MillraceError, ServiceUnavailable

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

ADMIN = "admin"
APP = "app"
"""Owns the tables and writes to them."""
DEBEZIUM = "debezium"
"""Reads the tables and the log; read-only."""
RECONCILE = "reconcile"
"""Counts rows."""

_HOST = "127.0.0.1"
_RIGHTS = {
    APP: (f"all privileges on {MARIADB_DATABASE}.*",),
    DEBEZIUM: (
        f"select, lock tables on {MARIADB_DATABASE}.*",
        "reload, show databases, replication slave, binlog monitor on *.*",
    ),
    RECONCILE: (f"select on {MARIADB_DATABASE}.*",),
}
_SYSTEM_TABLES = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
)


def connect(
    home: Home, database: str | None = MARIADB_DATABASE, user: str = APP
) -> Connection[Cursor]:
    """A connection to the sandbox's MariaDB; the caller closes it.

    ``user`` is ``app``, which writes; ``debezium`` or ``reconcile``, which read; ``admin``
    has all privileges.

    Raises:
        ServiceUnavailable: MariaDB is down, or denies access.
    """
    import pymysql

    try:
        return pymysql.connect(
            host=_HOST,
            port=home.ports["mariadb"],
            user=user,
            password=password(_folder(home), user),
            database=database,
            charset="utf8mb4",
            connect_timeout=10,
        )
    except pymysql.err.OperationalError as error:
        raise ServiceUnavailable(
            f"MariaDB at {MARIADB.address(home)} does not let {user} in"
            f" ({error.args[-1]}): `sandbox up cdc`"
        ) from error


def _folder(home: Home) -> Path:
    return home.services / "mariadb"


def _lacks_platform() -> str | None:
    if sys.platform == "linux" and platform.machine() in {"x86_64", "AMD64"}:
        return None
    return (
        "MariaDB comes for Linux on x86-64 only, not for"
        f" {platform.system()} on {platform.machine()}"
    )


def _settings(home: Home) -> str:
    folder, programs = _folder(home), component_folder("mariadb")
    settings = {
        "basedir": programs,
        "lc-messages-dir": programs / "share",
        "character-sets-dir": programs / "share" / "charsets",
        "datadir": folder / "data",
        # Relative to the data folder: socket paths are limited to 107 characters.
        "socket": "mariadb.sock",
        "pid-file": folder / "data" / "mariadb.pid",
        "bind-address": _HOST,
        "port": home.ports["mariadb"],
        "default-time-zone": "+00:00",
        "character-set-server": "utf8mb4",
        "innodb-buffer-pool-size": "64M",
        # Generating certificates takes seconds; connections are local.
        "ssl": 0,
        "server-id": 1,
        "log-bin": "binlog",
        "binlog-format": "ROW",
        "binlog-row-image": "FULL",
        "gtid-strict-mode": 1,
        # No expiration of the binary log: a connector may be down for long.
        "binlog-expire-logs-seconds": 0,
    }
    lines = [f"{key}={value}" for key, value in settings.items()]
    return "\n".join(["# Written by `sandbox up`.", "[mariadbd]", "skip-name-resolve", *lines, ""])


def _prepare(home: Home) -> None:
    """Create the data folder atomically, so that a killed start leaves no partial folder."""
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "my.cnf").write_text(_settings(home))
    data = folder / "data"
    if data.exists():
        return
    new = folder / "data.new"
    give_new_folder(new)
    programs = component_folder("mariadb")
    # fmt: off
    make = [
        str(programs / "bin" / "mariadbd"), "--no-defaults", "--bootstrap",
        f"--datadir={new}", f"--basedir={programs}",
        f"--lc-messages-dir={programs}/share", "--skip-networking",
    ]
    # fmt: on
    done = run_as_somebody(make, dict(os.environ), _first_statements(home))
    if done.returncode != 0 or "ERROR: " in done.stderr:
        output = [line for line in done.stderr.splitlines() if "ERROR" in line]
        raise MillraceError(f"MariaDB cannot make {new}: {(output or ['no error message'])[0]}")
    new.rename(data)


def _first_statements(home: Home) -> str:
    """SQL that creates the system tables and the admin user, one statement per line."""
    share = component_folder("mariadb") / "share"
    lines = [
        "create database if not exists mysql;",
        "use mysql;",
        "set @auth_root_socket=NULL;",
        *((share / name).read_text() for name in _SYSTEM_TABLES),
        "flush privileges;",
        # The system tables contain a root user without a password.
        "delete from mysql.global_priv where user in ('root', '');",
        "flush privileges;",
        f"create user {ADMIN}@'{_HOST}' identified by '{password(_folder(home), ADMIN)}';",
        f"grant all privileges on *.* to {ADMIN}@'{_HOST}' with grant option;",
    ]
    return "\n".join(lines) + "\n"


def _command(home: Home) -> list[str]:
    program = component_folder("mariadb") / "bin" / "mariadbd"
    return as_somebody([str(program), f"--defaults-file={_folder(home) / 'my.cnf'}"])


def _is_ready(home: Home) -> bool:
    try:
        connect(home, None, ADMIN).close()
    except (ServiceUnavailable, OSError):
        return False
    return True


def _settle(home: Home) -> list[str]:
    """Create the database, its users and its tables if missing."""
    made = []
    with closing(connect(home, None, ADMIN)) as connection:
        cursor = connection.cursor()
        if not _found(cursor, "show databases like %s", MARIADB_DATABASE):
            cursor.execute(f"create database {MARIADB_DATABASE}")
            made.append(f"database {MARIADB_DATABASE}")
        for user, rights in _RIGHTS.items():
            if not _found(cursor, "select 1 from mysql.user where user = %s", user):
                secret = password(_folder(home), user)
                cursor.execute(f"create user {user}@'{_HOST}' identified by %s", (secret,))
                for right in rights:
                    cursor.execute(f"grant {right} to {user}@'{_HOST}'")
                made.append(f"user {user}")
    with closing(connect(home)) as connection:
        cursor = connection.cursor()
        if not _found(cursor, "show tables"):
            for statement in _statements(schema_text(MARIADB_DATABASE)):
                cursor.execute(statement)
            made.append(f"tables of {MARIADB_DATABASE}")
    return made


def _found(cursor: Cursor, query: str, *values: Any) -> bool:
    return cursor.execute(query, values) > 0


def _statements(text: str) -> list[str]:
    """The statements of a schema file: MariaDB executes one at a time."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [part for part in "\n".join(lines).split(";\n") if part.strip()]


MARIADB = Service(
    name="mariadb",
    title="MariaDB, captured",
    parts=("mariadb",),
    ports=("mariadb",),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    settle=_settle,
    is_asked_for=True,
    is_open_only=True,
    lacks_platform=_lacks_platform,
)
