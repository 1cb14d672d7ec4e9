"""Rows of bronze with their place in Kafka."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def rows_of(columns: str, *rows: tuple[Any, ...]) -> list[Row]:
    """Rows by the names of their columns, which blanks separate."""
    return [dict(zip(columns.split(), row, strict=True)) for row in rows]


class Kafka:
    """Gives records their place in Kafka, one topic's offsets going up."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.topic_id = "first"
        self._ends: dict[tuple[str, int], int] = {}

    def record(self, partition: int, sent_at: str | None, **values: Any) -> Row:
        """A record at the end of a partition."""
        place = (self.topic_id, partition)
        offset = self._ends.get(place, 0)
        self._ends[place] = offset + 1
        return {
            "_kafka_topic": self.topic,
            "_kafka_topic_id": self.topic_id,
            "_kafka_partition": partition,
            "_kafka_offset": offset,
            "_kafka_timestamp": sent_at or "2026-01-04 00:00:00",
            **values,
        }


def said_by(record: Row) -> Row:
    """A record without its place: what is sent when it is sent again."""
    return {name: value for name, value in record.items() if name[:6] != "_kafka"}
