"""What the captured databases have in common: their tables' files, their users' passwords.

A password is made once, in a file beside the data that it opens.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from sandbox.services.security import write_secret
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


def password(folder: Path, user: str) -> str:
    """A user's password; made when it is asked for the first time.

    ``folder`` is that of the database's service.
    """
    file = folder / f"{user}.password"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_secret(file, secrets.token_urlsafe(24))
    return file.read_text()
