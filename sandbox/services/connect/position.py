"""How far a connector has come in the log of its database, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from sandbox.services import mariadb, postgres
from sandbox.settings import Home

# The service that a connector reads from, by the last word of its class.
_DATABASES = {"PostgresConnector": "postgres", "MariaDbConnector": "mariadb"}


def database_of(config: Mapping[str, str]) -> str | None:
    """The service that a connector reads from; none when it is no database of ours."""
    return _DATABASES.get(config.get("connector.class", "").rpartition(".")[2])


def log_end(home: Home, config: Mapping[str, str]) -> int | None:
    """Where the log of a connector's database ends now.

    Raises:
        ServiceUnavailable: The database does not answer.
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
    """Up to where everything of the log is in Kafka.

    ``offset`` is what the connector has committed. None when it has not got beyond its first
    snapshot, or stands somewhere that is not in this log.

    Raises:
        ServiceUnavailable: The database does not answer.
    """
    # Said for as long as rows are read that were there before.
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
    """Size in bytes of each file of MariaDB's log, in their order."""
    with closing(mariadb.connect(home, None, mariadb.DEBEZIUM)) as connection:
        cursor = connection.cursor()
        cursor.execute("show binary logs")
        return {str(row[0]): int(row[1]) for row in cursor.fetchall()}
