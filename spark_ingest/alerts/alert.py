"""Alerts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of alerts: the values of the column ``kind`` of ``bronze.ingest_alerts``."""

    FAILED_NODE = "failed node"
    STALE_SOURCE = "stale source"
    OLD_MART = "old mart"
    QUARANTINE = "quarantine"
    STOPPED_STREAM = "stopped stream"
    GAP = "gap"
    KAFKA = "kafka"


@dataclass(frozen=True)
class Alert:
    """A problem that needs action.

    Attributes:
        kind: The kind of problem.
        subject: The affected stream, dbt node or exposure; with ``kind`` the alert's key.
        message: One line about the problem.
        help: The command that fixes it or shows details.
    """

    kind: Kind
    subject: str
    message: str
    help: str

    @property
    def key(self) -> tuple[Kind, str]:
        return self.kind, self.subject


@dataclass(frozen=True)
class Found:
    """The result of a check.

    Attributes:
        alerts: The open alerts.
        unknown: Kinds that could not be checked: their alerts stay open.
    """

    alerts: tuple[Alert, ...]
    unknown: frozenset[Kind] = frozenset()

    def __add__(self, other: Found) -> Found:
        return Found(self.alerts + other.alerts, self.unknown | other.unknown)
