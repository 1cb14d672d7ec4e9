"""The tables of the sandbox's databases, as their schema files say."""

from __future__ import annotations

from sandbox.settings import PROJECT

POSTGRES_DATABASES = {"moma": "public", "pagila": "public", "ems": "ems", "crm": "crm"}
"""PostgreSQL's databases, and in which schema of each the tables are."""
MARIADB_DATABASE = "ecomm"
_FILES = {
    "moma": "moma/schema.sql",
    "pagila": "pagila/schema.sql",
    "ems": "tickit/ems.sql",
    "ecomm": "tickit/ecomm.sql",
    "crm": "tickit/crm.sql",
}


def schema_text(database: str) -> str:
    """The SQL that makes the tables of an empty database."""
    return (PROJECT / "sandbox" / "databases" / _FILES[database]).read_text()


def schema_of(database: str) -> str:
    """The schema that a database's tables are in: in MariaDB the two are one."""
    return POSTGRES_DATABASES.get(database, database)
