"""All databases of the sandbox."""

from __future__ import annotations

from sandbox.databases.moma.changes import MOMA
from sandbox.databases.pagila.changes import PAGILA
from sandbox.databases.tables import Database
from sandbox.databases.tickit.crm import CRM
from sandbox.databases.tickit.ecomm import ECOMM
from sandbox.databases.tickit.ems import EMS

TICKIT: tuple[Database, ...] = (EMS, ECOMM, CRM)
"""The databases of the ticket shop, which one command fills and changes."""
DATABASES: dict[str, Database] = {database.name: database for database in (MOMA, PAGILA, *TICKIT)}
"""By their names."""
