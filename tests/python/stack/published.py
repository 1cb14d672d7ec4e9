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
from typer.testing import Result

from spark_ingest.publish.publications import read_publications
from spark_ingest.publish.publisher import Publisher
from tests.python.stack.conftest import Feed, command_here

COLUMNS = {
    "region": ("string", True),
    "at": ("timestamp", True),
    "amount": ("decimal(18,2)", False),
}


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
        columns = ", ".join(
            f"{name} {kind}" for name, (kind, _) in self.columns.items()
        )
        self.sql(
            f"create or replace table {{mart}} ({columns}) partitioned by (days(at))"
        )

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

    def log(self) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        """What is committed in the topic, in the order of each partition."""
        home = self.feed.stack.home
        registry = SchemaRegistryClient({"url": home.registry_url})
        read = AvroDeserializer(registry)
        consumer = Consumer(
            {
                "bootstrap.servers": home.bootstrap_servers,
                "group.id": f"reader-{self.name}",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        found: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
        consumer.assign([TopicPartition(self.topic, number, 0) for number in (0, 1)])
        ended = 0
        while ended < 2:
            message = consumer.poll(10)
            assert message is not None
            if (error := message.error()) is not None:
                assert error.name() == "_PARTITION_EOF"
                ended += 1
                continue
            key = read(
                message.key(), SerializationContext(self.topic, MessageField.KEY)
            )
            value = message.value()
            context = SerializationContext(self.topic, MessageField.VALUE)
            found.append((key, None if value is None else read(value, context)))
        consumer.close()
        return found

    def read(self) -> set[tuple[Any, ...]]:
        """The rows that a reader of the whole topic has."""
        held: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
        for key, value in self.log():
            gone = value is None or value.pop("_op", "u") == "d"
            row = None
            if value is not None and not gone:
                value.pop("_committed_at", None)
                row = tuple(value.values())
            held[tuple(key.values())] = row
        return {row for row in held.values() if row is not None}

    def rows(self) -> set[tuple[Any, ...]]:
        """The rows of the mart."""
        found = self.feed.services.spark.table(self.table).select(*self.columns)
        rows = [
            tuple(v.astimezone(UTC) if isinstance(v, datetime) else v for v in row)
            for row in found.collect()
        ]
        assert len(rows) == len(set(rows))
        return set(rows)

    def assert_read(self) -> None:
        assert self.read() == self.rows()
