"""Kafka source options of the plain Spark systems: the same fetch settings as Millrace."""

from __future__ import annotations


def options(servers: str, topic: str) -> dict[str, str]:
    """Options of Spark's Kafka source for a whole topic."""
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.max.poll.records": "20000",
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.partition.fetch.bytes": str(8 * 2**20),
        "kafka.fetch.max.bytes": str(64 * 2**20),
    }
