"""The services of the sandbox, in the order in which they start.

A new one is a module here that makes a ``Service``, and an entry in ``SERVICES``.
"""

from __future__ import annotations

from sandbox.services.kafka import KAFKA
from sandbox.services.redshift import REDSHIFT
from sandbox.services.registry import REGISTRY
from sandbox.services.service import Service

SERVICES: dict[str, Service] = {
    service.name: service for service in (KAFKA, REGISTRY, REDSHIFT)
}
