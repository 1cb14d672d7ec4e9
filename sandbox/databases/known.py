"""All databases of the sandbox."""

from __future__ import annotations

from sandbox.databases.moma.changes import MOMA
from sandbox.databases.pagila.changes import PAGILA
from sandbox.databases.tables import Database
from sandbox.databases.tickit.changes import ECOMM

DATABASES: dict[str, Database] = {
    database.name: database for database in (MOMA, PAGILA, ECOMM)
}
"""By their names."""
