"""A mart whose exposure is published, and who reads its topic by Confluent's own deserializers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import DataFrame
from typer.testing import Result

from sandbox.settings import Home
from spark_ingest.publish.publications import read_publications
from spark_ingest.publish.publisher import Publisher
from tests.python.stack.conftest import Feed, command_here

OF_CHANGE = ("_op", "_committed_at")
COLUMNS = {
    "region": ("string", True),
    "at": ("timestamp", True),
    "amount": ("decimal(18,2)", False),
}


Sent = tuple[dict[str, Any], dict[str, Any] | None]
"""A record of a topic: its key, and its value or that it is a tombstone."""


def sent(home: Home, topic: str) -> list[Sent]:
    """What is committed in a topic, in the order of each partition."""
    read = AvroDeserializer(SchemaRegistryClient({"url": home.registry_url}))
    consumer = Consumer(
        {
            "bootstrap.servers": home.bootstrap_servers,
            "group.id": f"reader-{topic}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    numbers = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    found: list[Sent] = []
    ended = 0
    while ended < len(numbers):
        message = consumer.poll(10)
        assert message is not None
        if (error := message.error()) is not None:
            assert error.name() == "_PARTITION_EOF"
            ended += 1
            continue
        key = read(message.key(), SerializationContext(topic, MessageField.KEY))
        value = message.value()
        context = SerializationContext(topic, MessageField.VALUE)
        found.append((key, None if value is None else read(value, context)))
    consumer.close()
    return found


def last_rows(records: list[Sent]) -> list[dict[str, Any]]:
    """What a reader of a topic has in the end: of each key the last row, if it is not gone."""
    held: dict[tuple[Any, ...], dict[str, Any] | None] = {}
    for key, value in records:
        row = None
        if value is not None and value.get("_op") != "d":
            row = {name: value[name] for name in value if name not in OF_CHANGE}
        held[tuple(key.values())] = row
    return [row for row in held.values() if row is not None]


def mart_rows(mart: DataFrame, *columns: str) -> list[dict[str, Any]]:
    """A mart's rows, as Avro's readers give them."""
    return [
        {
            name: value.astimezone(UTC) if isinstance(value, datetime) else value
            for name, value in row.asDict(recursive=True).items()
        }
        for row in mart.select(*(columns or mart.columns)).collect()
    ]


@dataclass
class Sales:
    """A mart, its exposure, and who reads the topic."""

    feed: Feed
    name: str
    manifest: Path
    envelope: str = "upsert"
    columns: dict[str, tuple[str, bool]] = field(default_factory=lambda: dict(COLUMNS))
    key: tuple[str, ...] = ("region", "at")

    @property
    def topic(self) -> str:
        return f"out.{self.name}"

    @property
    def table(self) -> str:
        return f"lake.marts.{self.name}"

    def declare(self) -> None:
        """Write the manifest."""
        columns = {
            name: {
                "name": name,
                "description": f"The {name}.",
                "constraints": [{"type": "not_null"}] if required else [],
            }
            for name, (_, required) in self.columns.items()
        }
        model = {
            "name": self.name,
            "schema": "marts",
            "alias": self.name,
            "description": "Sales.",
            "contract": {"enforced": True},
            "config": {"materialized": "incremental"},
            "columns": columns,
        }
        publish = {
            "topic": self.topic,
            "key": list(self.key),
            "envelope": self.envelope,
            "partitions": 2,
        }
        exposure = {
            "name": self.name,
            "original_file_path": "models/out.yml",
            "config": {"meta": {"publish": publish}},
            "depends_on": {"nodes": ["model.m.mart"]},
        }
        made = json.loads(self.feed.manifest.read_text())
        made |= {"nodes": {"model.m.mart": model}, "exposures": {"out": exposure}}
        self.manifest.write_text(json.dumps(made))

    def sql(self, statement: str) -> None:
        self.feed.services.spark.sql(statement.format(mart=self.table))

    def make(self) -> None:
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in self.columns.items())
        self.sql(f"create or replace table {{mart}} ({columns}) partitioned by (days(at))")

    def insert(self, *rows: tuple[str, str, float | None]) -> None:
        values = ", ".join(
            f"('{region}', timestamp '{at}', {'null' if amount is None else amount})"
            for region, at, amount in rows
        )
        self.sql(f"insert into {{mart}} (region, at, amount) values {values}")

    def command(self, *words: str) -> Result:
        return command_here(self.feed.stack, self.manifest, "publish", *words)

    def publish(self, *words: str) -> str:
        """What a publication prints; it must succeed."""
        done = self.command("--once", *words)
        assert done.exit_code == 0, f"{done.output}{done.exception}"
        return done.output

    @contextmanager
    def publisher(self) -> Iterator[Publisher]:
        """A publisher in this process; without the command's frame."""
        (publication,) = read_publications(self.manifest)
        with Publisher(self.feed.services, publication) as opened:
            yield opened

    def log(self) -> list[Sent]:
        """What is committed in the topic, in the order of each partition."""
        return sent(self.feed.stack.home, self.topic)

    def read(self) -> set[tuple[Any, ...]]:
        """The rows that a reader of the whole topic has."""
        return {tuple(row.values()) for row in last_rows(self.log())}

    def rows(self) -> set[tuple[Any, ...]]:
        """The rows of the mart."""
        found = mart_rows(self.feed.services.spark.table(self.table), *self.columns)
        rows = [tuple(row.values()) for row in found]
        assert len(rows) == len(set(rows))
        return set(rows)

    def assert_read(self) -> None:
        assert self.read() == self.rows()
