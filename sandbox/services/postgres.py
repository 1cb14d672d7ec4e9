"""PostgreSQL with change data capture: logical decoding, databases and roles."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.services import postgres_programs
from sandbox.services.captured_databases import POSTGRES_DATABASES, password, schema_of, schema_text
from sandbox.services.security import write_secret
from sandbox.services.service import Service
from sandbox.services.unprivileged import give, give_new_folder
from sandbox.settings import Home, load_home
from spark_ingest.errors import MillraceError, ServiceUnavailable

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

ADMIN = "admin"
APP = "app"
"""Owns the tables and writes to them."""
DEBEZIUM = "debezium"
"""Reads the tables and the log; read-only."""
RECONCILE = "reconcile"
"""Counts rows while the tables are locked."""
PUBLICATION = "captured"
# Table privileges; `maintain` includes the right to lock.
_RIGHTS = {DEBEZIUM: "select", RECONCILE: "select, maintain"}
# Default replica identity: changes contain the old values of the key only.
_DEFAULT_IDENTITY = ("film",)

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
timezone = 'UTC'
log_timezone = 'UTC'
shared_buffers = 64MB
max_connections = 60
jit = off
wal_level = logical
max_replication_slots = 10
max_wal_senders = 10
"""
_ACCESS = """
host all all 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
"""


def connect(home: Home, database: str, user: str = APP) -> Connection:
    """A connection to one of the sandbox's databases; the caller closes it.

    ``database`` is one of ``POSTGRES_DATABASES``; ``user`` is ``app``, which writes;
    ``debezium`` or ``reconcile``, which read; ``admin`` has all privileges.

    Raises:
        ServiceUnavailable: PostgreSQL is down, or denies access.
    """
    import psycopg2

    try:
        return psycopg2.connect(
            host="127.0.0.1",
            port=home.ports["postgres"],
            dbname=database,
            user=user,
            password=password(_folder(home), user),
            connect_timeout=10,
            application_name="sandbox",
        )
    except psycopg2.OperationalError as error:
        raise ServiceUnavailable(
            f"PostgreSQL at {POSTGRES.address(home)} does not let {user} into {database}"
            f" ({str(error).strip().splitlines()[-1]}): `sandbox up cdc`"
        ) from error


def _folder(home: Home) -> Path:
    return home.services / "postgres"


def _prepare(home: Home) -> None:
    """Create the data folder atomically, so that a killed start leaves no partial folder."""
    folder = _folder(home)
    data = folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    if data.exists():
        return
    new = folder / "data.new"
    give_new_folder(new)
    secret = folder / "initdb.password"
    write_secret(secret, password(folder, ADMIN))
    give(secret)
    make = ["initdb", "--pgdata", str(new), "--username", ADMIN]
    make += ["--auth", "scram-sha-256", "--pwfile", str(secret)]
    make += ["--encoding", "UTF8", "--locale", "C"]
    with postgres_programs.programs(folder) as programs:
        postgres_programs.run_program(programs, make)
    secret.unlink()
    with (new / "postgresql.conf").open("a") as file:
        file.write(_SETTINGS)
    (new / "pg_hba.conf").write_text(_ACCESS)
    new.rename(data)


def _command(home: Home) -> list[str]:
    return [sys.executable, "-m", "sandbox.services.postgres", str(home.path)]


def _is_ready(home: Home) -> bool:
    try:
        connect(home, "postgres", ADMIN).close()
    except (ServiceUnavailable, OSError):
        return False
    return True


def _settle(home: Home) -> list[str]:
    """Create the roles, databases, tables and publications if missing."""
    made = _make_roles_and_databases(home)
    for database in POSTGRES_DATABASES:
        made += _make_tables(home, database)
        made += _prepare_capture(home, database)
    return made


def _make_roles_and_databases(home: Home) -> list[str]:
    made = []
    with closing(connect(home, "postgres", ADMIN)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        roles = {APP: "login", DEBEZIUM: "login replication", RECONCILE: "login"}
        for role, rights in roles.items():
            cursor.execute("select from pg_roles where rolname = %s", (role,))
            if cursor.fetchone() is None:
                secret = password(_folder(home), role)
                cursor.execute(f"create role {role} {rights} password %s", (secret,))
                made.append(f"role {role}")
        for database in POSTGRES_DATABASES:
            cursor.execute("select from pg_database where datname = %s", (database,))
            if cursor.fetchone() is None:
                cursor.execute(f"create database {database} owner {APP}")
                made.append(f"database {database}")
    return made


def _make_tables(home: Home, database: str) -> list[str]:
    """Run the schema file in an empty database, as the owner of its tables."""
    schema = schema_of(database)
    with closing(connect(home, database)) as connection, connection:
        cursor = connection.cursor()
        cursor.execute(f"create schema if not exists {schema}")
        # The default schema, here and in later sessions.
        cursor.execute(f"alter database {database} set search_path to {schema}")
        cursor.execute(f"set search_path to {schema}")
        for role, rights in _RIGHTS.items():
            cursor.execute(f"grant usage on schema {schema} to {role}")
            cursor.execute(f"grant {rights} on all tables in schema {schema} to {role}")
            cursor.execute(
                f"alter default privileges in schema {schema} grant {rights} on tables to {role}"
            )
        cursor.execute("select from pg_tables where schemaname = %s limit 1", (schema,))
        if cursor.fetchone() is not None:
            return []
        cursor.execute(schema_text(database))
    return [f"tables of {database}"]


def _prepare_capture(home: Home, database: str) -> list[str]:
    """Create the publication, and set the replica identity."""
    made = []
    schema = schema_of(database)
    with closing(connect(home, database, ADMIN)) as connection, connection:
        cursor = connection.cursor()
        cursor.execute(
            "select relname from pg_class where relnamespace = %s::regnamespace"
            " and relkind in ('r', 'p') and relreplident = 'd' order by relname",
            (schema,),
        )
        for (table,) in cursor.fetchall():
            if table not in _DEFAULT_IDENTITY:
                cursor.execute(f'alter table {schema}."{table}" replica identity full')
        cursor.execute("select from pg_publication where pubname = %s", (PUBLICATION,))
        if cursor.fetchone() is None:
            cursor.execute(
                f"create publication {PUBLICATION} for tables in schema {schema}"
                # Rows of a partitioned table go to its topic, not to topics of partitions.
                " with (publish_via_partition_root = true)"
            )
            made.append(f"publication {PUBLICATION} of {database}")
    return made


POSTGRES = Service(
    name="postgres",
    title="PostgreSQL, captured",
    parts=("postgres",),
    ports=("postgres",),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    settle=_settle,
    is_asked_for=True,
    is_open_only=True,
)


def main(home: Home) -> None:
    """Run PostgreSQL until this process is stopped."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    folder = _folder(home)
    with postgres_programs.programs(folder) as programs:
        database = postgres_programs.start(
            "postgres", home.ports["postgres"], folder / "data", programs
        )
        try:
            while database.poll() is None and not stopping.wait(0.5):
                pass
        finally:
            postgres_programs.end(database)
    if not stopping.is_set():
        raise MillraceError("PostgreSQL ended by itself: see above")


if __name__ == "__main__":
    try:
        # The port is in the settings, which `up` has written.
        main(load_home({"SANDBOX_HOME": sys.argv[1]}))
    except MillraceError as error:
        sys.exit(str(error))
