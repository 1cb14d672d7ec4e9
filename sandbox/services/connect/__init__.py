"""Kafka Connect with Debezium: changes of the databases become records in topics.

``worker`` configuration of the worker, and its Avro converter · ``rest`` client of its REST API ·
``connectors`` connectors from ``sandbox/connectors/*.json`` · ``position`` their position in the
logs of the databases.
"""

from __future__ import annotations

from sandbox.services.connect import rest, worker
from sandbox.services.connect.connectors import (
    FAILED,
    ConnectorStatus,
    apply_connectors,
    connector_status,
    declared,
    describe,
    wait_until_passed,
)
from sandbox.services.service import Service
from sandbox.settings import Home

__all__ = [
    "CONNECT",
    "FAILED",
    "ConnectorStatus",
    "apply_connectors",
    "connector_status",
    "declared",
    "describe",
    "wait_until_passed",
]


def _prepare(home: Home) -> None:
    worker.prepare(home, CONNECT.folder(home))


def _command(home: Home) -> list[str]:
    return worker.command(CONNECT.folder(home))


CONNECT = Service(
    name="connect",
    title="Kafka Connect with Debezium",
    parts=("connect", "avro-converter"),
    ports=("connect",),
    prepare=_prepare,
    command=_command,
    is_ready=rest.is_healthy,
    settle=apply_connectors,
    needs=("kafka", "registry"),
    is_asked_for=True,
    is_open_only=True,
)
