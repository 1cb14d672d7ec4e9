"""Schema files and passwords of the captured databases.

A password is generated once, in a file next to the data.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from sandbox.services.security import write_secret
from sandbox.settings import PROJECT

POSTGRES_DATABASES = {"moma": "public", "pagila": "public", "ems": "ems", "crm": "crm"}
"""PostgreSQL databases, with the schema of their tables."""
MARIADB_DATABASE = "ecomm"
_FILES = {
    "moma": "moma/schema.sql",
    "pagila": "pagila/schema.sql",
    "ems": "tickit/ems.sql",
    "ecomm": "tickit/ecomm.sql",
    "crm": "tickit/crm.sql",
}


def schema_text(database: str) -> str:
    """The SQL that creates the tables."""
    return (PROJECT / "sandbox" / "databases" / _FILES[database]).read_text()


def schema_of(database: str) -> str:
    """The schema of a database's tables: in MariaDB the database itself."""
    return POSTGRES_DATABASES.get(database, database)


def password(folder: Path, user: str) -> str:
    """A user's password, generated on first use.

    ``folder`` is the folder of the database service.
    """
    file = folder / f"{user}.password"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_secret(file, secrets.token_urlsafe(24))
    return file.read_text()
