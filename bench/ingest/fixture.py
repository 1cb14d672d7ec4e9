"""The test fixture: a sandbox of its own, with a filled topic."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Schema

from bench.ingest.fill import Filling, fill, make_topic
from bench.ingest.load import Sent, Shape, schemas
from sandbox.install import spark_conf
from sandbox.processes import process
from sandbox.services import registry, stack
from sandbox.settings import DEFAULT_PORTS, Home, save_settings
from sandbox.ui import say

SCHEMA = "bronze"
SOURCE = "bench"
# Below the ephemeral port range.
_PORTS = range(20_000, 32_000)
_SENDERS = 2


@dataclass(frozen=True)
class Fixture:
    """A sandbox with a topic that is filled with records.

    Attributes:
        home: The sandbox; its services are running.
        topic: The topic.
        partitions: Number of partitions.
        shape: The shape of its records.
        ids: The registry's ids of the older and the newer schema.
        sent: The records in it.
    """

    home: Home
    topic: str
    partitions: int
    shape: Shape
    ids: tuple[int, int]
    sent: Sent

    @property
    def folder(self) -> Path:
        """The working directory of the systems."""
        return self.home.path / "work"

    @property
    def catalog(self) -> Path:
        """The SQLite file of the lake's catalog."""
        return self.home.lake / "catalog.db"

    @property
    def fields(self) -> list[str]:
        """The newer schema's fields."""
        return [field["name"] for field in schemas(self.shape)[1]["fields"]]

    @property
    def times(self) -> list[str]:
        """The fields that are timestamps."""
        return [
            field["name"]
            for field in schemas(self.shape)[1]["fields"]
            if isinstance(field["type"], dict)
            and str(field["type"].get("logicalType")).startswith("timestamp")
        ]

    def schema_file(self, which: int) -> Path:
        """The file of the older (0) or the newer (1) schema, named by its id."""
        return self.home.path / "schemas" / f"{self.ids[which]}.avsc"

    def clear(self) -> None:
        """Remove the tables and files of the previous system."""
        for folder in (self.home.lake, self.folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)


@contextmanager
def open_sandbox(folder: Path) -> Iterator[Home]:
    """Start a sandbox on free ports, and remove it afterwards.

    After a failure the logs are kept.

    Args:
        folder: The directory of the sandbox; it is emptied first.
    """
    shutil.rmtree(folder, ignore_errors=True)
    free = free_ports(len(DEFAULT_PORTS))
    home = Home(folder.resolve(), dict(zip(DEFAULT_PORTS, free, strict=True)))
    save_settings(home)
    spark_conf.bring_spark()
    try:
        stack.up(home, ["kafka", "registry"])
        yield home
    except BaseException:
        _close(home)
        raise
    _close(home)
    shutil.rmtree(folder, ignore_errors=True)


def _close(home: Home) -> None:
    stack.down(home)
    for rest in home.path.iterdir():
        if rest.is_dir() and rest != home.logs:
            shutil.rmtree(rest, ignore_errors=True)


def prepare(
    home: Home, topic: str, records: int, partitions: int = 4, shape: Shape | None = None
) -> Fixture:
    """Create a topic, register its schemas and fill it with records.

    Args:
        home: The sandbox.
        topic: Its name.
        records: Number of records; with 0 the topic stays empty.
        partitions: Number of partitions.
        shape: The shape of the records.
    """
    shape = shape or Shape()
    ids = register(home, topic, shape)
    filling = Filling(home.bootstrap_servers, topic, partitions, shape, ids)
    if records:
        say(f"{topic}: sending {records:,} records to {partitions} partitions")
        sent = fill(filling, records, _SENDERS)
    else:
        make_topic(home.bootstrap_servers, topic, partitions)
        sent = Sent()
    return Fixture(home, topic, partitions, shape, ids, sent)


def register(home: Home, topic: str, shape: Shape) -> tuple[int, int]:
    """Register both schemas of a shape for a topic, and write them to files.

    Returns:
        The registry's ids of the older and the newer one.
    """
    client = registry.client(home)
    older, newer = schemas(shape)
    ids = [
        client.register_schema(f"{topic}-value", Schema(json.dumps(schema), "AVRO"))
        for schema in (older, newer)
    ]
    folder = home.path / "schemas"
    folder.mkdir(exist_ok=True)
    for number, schema in zip(ids, (older, newer), strict=True):
        (folder / f"{number}.avsc").write_text(json.dumps(schema))
    return ids[0], ids[1]


def free_ports(count: int) -> list[int]:
    """Unused ports on 127.0.0.1, all different."""
    some = random.sample(_PORTS, 200)
    return [port for port in some if process.port_is_free(port)][:count]


def write_manifest(file: Path, topics: dict[str, str]) -> None:
    """A dbt manifest that declares streams, as `spark-ingest --manifest` reads it.

    Args:
        file: To write.
        topics: Topic by the table's name.
    """
    nodes: dict[str, Any] = {
        table: {
            "source_name": SOURCE,
            "name": table,
            "schema": SCHEMA,
            "identifier": table,
            "description": "Receipts of the benchmark.",
            "columns": {},
            "tags": [],
            "original_file_path": "bench",
            "config": {"meta": {"ingest": {"topic": topic}}},
        }
        for table, topic in topics.items()
    }
    file.write_text(json.dumps({"sources": nodes}))
