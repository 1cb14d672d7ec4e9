"""The schemas that a topic's records were written with, as the registry has them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from spark_ingest import quarantine
from spark_ingest.registry import SchemaRegistry
from spark_ingest.schema import TopicSchema, combine
from spark_ingest.sources import Stream

_ID_RETRY_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 60.0


@dataclass
class Schemas:
    """The schemas of one topic as the registry has them, and ids that it does not know.

    Attributes:
        registry: Where they come from.
        stream: Whose.
        unknown_wait: Seconds to keep asking for an id before its records are quarantined.
        wait: Sleeps some seconds; raises when the stream is being stopped.
    """

    registry: SchemaRegistry
    stream: Stream
    unknown_wait: float
    wait: Callable[[float], None]
    _others: dict[str, list[int]] = field(
        default_factory=lambda: {"value": [], "key": []}
    )
    _unknown: dict[int, float] = field(default_factory=dict)

    def value(self) -> TopicSchema:
        """The value schemas, asked for anew: a batch's ids were registered before it began."""
        return self._of("value")

    def key(self) -> TopicSchema | None:
        """The key schemas where the source declares a key."""
        return self._of("key") if self.stream.ingest.key else None

    def learn(self, ids: list[int], part: str) -> bool:
        """Ask for ids that no version of the subject has, for a while.

        Args:
            ids: Schema ids met in records. One that stayed unknown is asked for again after
                a minute, without waiting for it.
            part: ``value`` or ``key``.

        Returns:
            Whether one of them turned out to exist (under another subject): the batch is
            then decoded again.
        """
        now = time.monotonic()
        missing = [
            n
            for n in ids
            if n <= quarantine.MAX_INT
            and now - self._unknown.get(n, -_ASK_AGAIN_SECONDS) >= _ASK_AGAIN_SECONDS
        ]
        patient = any(n not in self._unknown for n in missing)
        deadline = now + self.unknown_wait if patient else now
        found = False
        while missing:
            for number in list(missing):
                if self.registry.schema(number) is not None:
                    self._others[part].append(number)
                    missing.remove(number)
                    found = True
            if not missing or time.monotonic() >= deadline:
                break
            self.wait(_ID_RETRY_SECONDS)
        self._unknown.update(dict.fromkeys(missing, time.monotonic()))
        return found

    def _of(self, part: str) -> TopicSchema:
        writers = self.registry.subject_schemas(f"{self.stream.topic}-{part}")
        have = {writer.id for writer in writers}
        others = [self.registry.schema(n) for n in self._others[part] if n not in have]
        return combine([*writers, *(writer for writer in others if writer is not None)])
