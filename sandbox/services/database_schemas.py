"""The tables of the sandbox's databases, as their schema files say."""

from __future__ import annotations

from sandbox.settings import PROJECT

POSTGRES_DATABASES = ("moma", "pagila")
MARIADB_DATABASE = "ecomm"


def schema_text(database: str) -> str:
    """The SQL that makes the tables of an empty database."""
    return (PROJECT / "sandbox" / "databases" / database / "schema.sql").read_text()
