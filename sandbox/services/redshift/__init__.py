"""The Redshift emulator: run the real `dbt-redshift` without an AWS account.

A PostgreSQL server behind a proxy that accepts Redshift's driver, rejects what Redshift
rejects and translates the other statements to PostgreSQL's dialect. It supports the statements
of this project and of its adapter, and is not Redshift: `docs/redshift.md` lists what only a
real cluster can show.

``refusals`` rejects what is not Redshift SQL: constructs by ``rules``, and function calls
(``calls``) by ``functions.yml`` ·
``dialect`` Redshift SQL → PostgreSQL SQL · ``*.sql`` functions that PostgreSQL lacks ·
``lake`` bronze as external tables · ``wire`` the connection between driver and server ·
``postgres`` the database itself · ``server`` the process that runs all of them.
"""

from __future__ import annotations

import socket
import sys

from sandbox.services.redshift import postgres
from sandbox.services.service import Service
from sandbox.settings import Home


def _command(home: Home) -> list[str]:
    return [sys.executable, "-m", "sandbox.services.redshift.server", str(home.path)]


def _prepare(home: Home) -> None:
    postgres.initialise(home, REDSHIFT.folder(home))


def _is_ready(home: Home) -> bool:
    """It opens its port when PostgreSQL accepts connections."""
    try:
        address = ("127.0.0.1", home.ports["redshift"])
        with socket.create_connection(address, timeout=5):
            return True
    except OSError:
        return False


REDSHIFT = Service(
    name="redshift",
    title="Redshift emulator (PostgreSQL)",
    parts=("postgres",),
    ports=("redshift", "redshift-postgres", "redshift-lake"),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    is_asked_for=True,
)
