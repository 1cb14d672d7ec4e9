"""The Redshift stand-in: what the real `dbt-redshift` can be tried on without an account.

A PostgreSQL of its own, and in front of it a server that speaks to Redshift's driver,
refuses what Redshift refuses and says the rest in PostgreSQL's words. It is made for the
statements of this project and of its adapter, and is not Redshift: `docs/redshift.md`
tells what only a real one can show.

``refusals`` what is not Redshift SQL: in its shape by ``rules``, and by the functions that
it calls (``calls``), which ``functions.yml`` lists ·
``dialect`` Redshift SQL → PostgreSQL SQL · ``*.sql`` what PostgreSQL lacks ·
``lake`` bronze as external tables · ``wire`` the connection between driver and server ·
``postgres`` the database itself · ``server`` the process that runs them all.
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
    """It opens its port when PostgreSQL takes connections."""
    try:
        address = ("127.0.0.1", home.ports["redshift"])
        with socket.create_connection(address, timeout=5):
            return True
    except OSError:
        return False


REDSHIFT = Service(
    name="redshift",
    title="Redshift stand-in (PostgreSQL)",
    parts=("postgres",),
    ports=("redshift", "redshift-postgres", "redshift-lake"),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    is_asked_for=True,
)
