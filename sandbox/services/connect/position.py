"""The position of a connector in the log of its database, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from sandbox.services import mariadb, postgres
from sandbox.settings import Home

# The database service, by the class name of the connector.
_DATABASES = {"PostgresConnector": "postgres", "MariaDbConnector": "mariadb"}


def database_of(config: Mapping[str, str]) -> str | None:
    """The database service of a connector; None if it is not part of the sandbox."""
    return _DATABASES.get(config.get("connector.class", "").rpartition(".")[2])


def log_end(home: Home, config: Mapping[str, str]) -> int | None:
    """The current end of the log of a connector's database.

    Raises:
        ServiceUnavailable: The database is down.
    """
    database = database_of(config)
    if database == "postgres":
        name = config["database.dbname"]
        with closing(postgres.connect(home, name, postgres.DEBEZIUM)) as connection:
            cursor = connection.cursor()
            cursor.execute("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
            row = cursor.fetchone()
            return int(row[0]) if row else None
    if database == "mariadb":
        return sum(_binary_logs(home).values())
    return None


def passed(home: Home, config: Mapping[str, str], offset: Mapping[str, Any]) -> int | None:
    """The position up to which the log is in Kafka.

    ``offset`` is the connector's committed offset. None during the initial snapshot, or if the
    position is not in this log.

    Raises:
        ServiceUnavailable: The database is down.
    """
    # Set during the initial snapshot.
    if offset.get("snapshot"):
        return None
    database = database_of(config)
    if database == "postgres" and "lsn" in offset:
        return int(offset["lsn"])
    if database == "mariadb" and "file" in offset:
        before = 0
        for file, size in _binary_logs(home).items():
            if file == offset["file"]:
                return before + int(offset["pos"])
            before += size
    return None


def _binary_logs(home: Home) -> dict[str, int]:
    """Size in bytes of each file of MariaDB's binary log, in order."""
    with closing(mariadb.connect(home, None, mariadb.DEBEZIUM)) as connection:
        cursor = connection.cursor()
        cursor.execute("show binary logs")
        return {str(row[0]): int(row[1]) for row in cursor.fetchall()}
