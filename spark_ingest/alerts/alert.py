"""One thing that needs a person."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an alert is about; the values are the column ``kind`` of the log."""

    FAILED_NODE = "failed node"
    STALE_SOURCE = "stale source"
    OLD_MART = "old mart"
    QUARANTINE = "quarantine"
    STOPPED_STREAM = "stopped stream"
    GAP = "gap"
    KAFKA = "kafka"


@dataclass(frozen=True)
class Alert:
    """What needs a person.

    Attributes:
        kind: What it is about.
        subject: Of what: a stream, a node of dbt, an exposure. With ``kind`` it is the alert's
            key.
        message: What is the matter, in one line.
        help: The command that helps, or that shows more.
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
    """What a look found.

    Attributes:
        alerts: What needs a person now.
        unknown: Kinds that could not be looked at: of these nothing is over.
    """

    alerts: tuple[Alert, ...]
    unknown: frozenset[Kind] = frozenset()

    def __add__(self, other: Found) -> Found:
        return Found(self.alerts + other.alerts, self.unknown | other.unknown)
