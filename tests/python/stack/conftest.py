"""Topics of their own for tests of the ingest, and the engine run inside the test."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from playwright.sync_api import Browser
from typer.testing import CliRunner, Result

from sandbox.install import spark_conf
from sandbox.settings import PROJECT
from spark_ingest.cli.app import app
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.profile import load_connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import MillraceError
from spark_ingest.lake.jvm import Jvm
from spark_ingest.operate import verify
from spark_ingest.sources import IngestMeta, Stream, target_folder
from spark_ingest.streaming import run, tables
from spark_ingest.streaming.progress import BatchReport, Progress
from spark_ingest.streaming.services import Services
from tests.python.conftest import Stack
from tests.python.spark.lake_program import type_dbt
from tests.python.stack.browser import opened_browser
from tests.python.world.avro import framed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_ingest.operate.verify import PartitionResult

SITE = ("index.html", "manifest.json", "catalog.json")

_NUMBERS = itertools.count(1)
_ENDING = (signal.SIGINT, signal.SIGTERM)

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": "string"}],
}


@dataclass
class Reports(Progress):
    """Progress that remembers."""

    batches: list[BatchReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def batch(self, report: BatchReport) -> None:
        self.batches.append(report)

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass(frozen=True)
class DemoRun:
    """A demo that ended well.

    Attributes:
        report: What it printed.
        site: The folder that holds its docs and nothing else.
    """

    report: str
    site: Path


@pytest.fixture(scope="session")
def demo(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo on the session's services, run once for all who look at what it leaves."""
    report = brief(stack).run("sandbox", "demo", "--count", "2000").stdout
    site = tmp_path_factory.mktemp("site")
    for name in SITE:
        # The next dbt command writes there again.
        shutil.copyfile(target_folder(PROJECT) / name, site / name)
    return DemoRun(report, site)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened


def brief(stack: Stack) -> Stack:
    """The stack, its Spark set for a minute or two over few rows."""
    options = {"SPARK_SUBMIT_OPTS": spark_conf.options_for_few_rows()}
    return replace(stack, env=stack.env | options)


def command_here(stack: Stack, manifest: Path, *words: str) -> Result:
    """Run `spark-ingest` in this process, on its Spark: a new JVM takes seconds.

    Args:
        stack: Whose services and lake it uses.
        manifest: Which streams it knows.
        words: The command, behind the options that come before its name.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        with patch.dict(os.environ, stack.env):
            return CliRunner().invoke(app, ["--manifest", str(manifest), *words])
    finally:
        # A command that runs streams takes them for itself.
        for number, handler in before.items():
            signal.signal(number, handler)


def dbt_here(
    stack: Stack, spark: SparkSession, project: Path, out: Path, *words: str
) -> dict[str, Any]:
    """Run dbt in this process, on its Spark, where the program is not what is tested.

    Args:
        stack: Whose lake it builds on.
        spark: The session; it is as it was afterwards, whatever the adapter sets.
        project: The dbt project.
        out: Where dbt's folders ``target`` and ``logs`` are.
        words: As typed behind ``dbt``.

    Returns:
        ``{"success", "said"}``, as ``lake_program`` gives it.
    """
    before = spark.conf.getAll
    try:
        with patch.dict(os.environ, stack.env):
            return type_dbt(project, out, [*words], "target")
    finally:
        for name, value in spark.conf.getAll.items():
            if name not in before:
                spark.conf.unset(name)
            elif before[name] != value:
                spark.conf.set(name, before[name])


def blocks(page: Path, section: str) -> list[str]:
    """The blocks of commands in a section of a page, in order."""
    _, found, text = page.read_text().partition(f"\n## {section}\n")
    assert found, f"{page} has no section {section}"
    return text.partition("\n## ")[0].split("```\n")[1::2]


def commands(page: Path, section: str) -> list[str]:
    """The commands of a section of a page, a line each."""
    return "".join(blocks(page, section)).splitlines()


@dataclass
class Feed:
    """One topic with its subject, its bronze table, and what was sent to it."""

    stack: Stack
    stream: Stream
    services: Services
    reports: Reports
    manifest: Path

    @property
    def topic(self) -> str:
        return self.stream.topic

    @property
    def table(self) -> str:
        return f"lake.{self.stream.table}"

    def register(self, schema: Any, subject: str | None = None) -> int:
        """Register a schema; its id."""
        client = SchemaRegistryClient({"url": self.stack.home.registry_url})
        return client.register_schema(
            subject or f"{self.topic}-value", Schema(json.dumps(schema), "AVRO")
        )

    def producer(self, **settings: str) -> Producer:
        return Producer({"bootstrap.servers": self.stack.home.bootstrap_servers, **settings})

    def send(self, *values: bytes | None, partition: int = 0, key: bytes = b"k") -> None:
        """Send raw values to one partition."""
        producer = self.producer()
        for value in values:
            producer.produce(self.topic, value, key, partition)
        assert producer.flush(30) == 0

    def ingest(self, max_records: int = 1_000_000) -> list[BatchReport]:
        """Take what is there, in this process; the batches it took."""
        before = len(self.reports.batches)
        tables.create_tables(self.services, [self.stream])
        settings = run.RunSettings(None, max_records, unknown_wait=0.5)
        run.run_streams(self.services, [self.stream], settings, threading.Event())
        return self.reports.batches[before:]

    def command(self, *words: str, manifest: Path | None = None) -> Result:
        """What `spark-ingest` does with this stream alone, or with those of a manifest."""
        return command_here(self.stack, manifest or self.manifest, *words)

    def log(self) -> DataFrame:
        """The table's commits in the log, in order."""
        rows = self.services.spark.table("lake.bronze.ingest_commits")
        mine = rows.where(rows["table_name"] == self.stream.table)
        return mine.where("kind <> 'table'").orderBy("commit_id")

    def offsets(self) -> list[tuple[int, int]]:
        """Every (partition, offset) in the bronze table, with repetitions."""
        rows = self.services.spark.table(self.table)
        return sorted(
            (row[0], row[1]) for row in rows.select("_kafka_partition", "_kafka_offset").collect()
        )

    def quarantined(self) -> list[tuple[int, str]]:
        """(offset, error class) of the topic's rows in quarantine, in order."""
        rows = self.services.spark.table("lake.bronze.quarantine")
        mine = rows.where(rows["_kafka_topic"] == self.topic)
        return sorted(
            (row[0], row[1]) for row in mine.select("_kafka_offset", "error_class").collect()
        )


def orders(schema_id: int, first: int, count: int) -> list[bytes]:
    """Framed orders with the ids from ``first`` on."""
    return [
        framed(schema_id, ORDER, {"id": i, "note": f"n{i}"}) for i in range(first, first + count)
    ]


def proofs(feed: Feed) -> list[PartitionResult]:
    """What `spark-ingest verify` finds, by partition."""
    services = feed.services
    topic = services.broker.existing_topic(feed.topic, feed.stream.name)
    found = verify.verify_stream(services.spark, services.broker, feed.stream, topic)
    return found.partitions


def wait_for(what: Callable[[], Any], seconds: float = 90) -> Any:
    """What a question answers, once that is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")


@contextmanager
def running(feed: Feed, *others: Feed) -> Iterator[list[MillraceError]]:
    """The engine at work on feeds in this process; the error that it ended with."""
    streams = [one.stream for one in (feed, *others)]
    tables.create_tables(feed.services, streams)
    stopping, failures = threading.Event(), list[MillraceError]()
    settings = run.RunSettings(0.3, 1_000_000, unknown_wait=0.5)

    def work() -> None:
        try:
            run.run_streams(feed.services, streams, settings, stopping)
        except MillraceError as failure:
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield failures
    finally:
        # Seen only where the test fails.
        print(*feed.reports.notes, sep="\n")
        stopping.set()
        thread.join(300)
        assert not thread.is_alive()


@contextmanager
def away(feed: Feed, table: str | None = None) -> Iterator[None]:
    """The folder of a feed's table, or of another one, is not there."""
    wanted = Jvm(feed.services.spark).iceberg_table(table or feed.stream.table)
    location = wanted.location()
    folder = Path(str(location).removeprefix("file:"))
    elsewhere = folder.rename(folder.with_name(f"{folder.name}.away"))
    try:
        yield
    finally:
        if folder.exists():
            # A write that was under way made it again.
            shutil.rmtree(folder)
        elsewhere.rename(folder)


def wide(feed: Feed, partitions: int) -> None:
    """Give a feed's topic more partitions."""
    admin = AdminClient({"bootstrap.servers": feed.stack.home.bootstrap_servers})
    more = NewPartitions(feed.topic, partitions)
    admin.create_partitions([more])[feed.topic].result(30)
    wait_for(
        lambda: len(feed.services.broker.existing_topic(feed.topic, "").partitions) == partitions
    )


@pytest.fixture
def new_feed(stack: Stack, spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[], Feed]]:
    """Makes feeds: a topic of two partitions each, gone again after the test."""
    connections = load_connections(PROJECT / "profiles" / "ingest.yml", None, stack.env)
    admin = AdminClient({"bootstrap.servers": stack.home.bootstrap_servers})
    made: list[str] = []

    def make() -> Feed:
        number = next(_NUMBERS)
        name = f"feed{number}"
        topic = f"test.{name}"
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
        made.append(topic)
        ingest = {"topic": topic}
        manifest = tmp_path / f"{name}.json"
        node = {
            "source_name": "test",
            "name": name,
            "schema": "bronze",
            "identifier": f"test__{name}",
            "description": "Orders of a test.",
            "columns": {},
            "tags": [],
            "original_file_path": "none",
            "config": {"meta": {"ingest": ingest}},
        }
        manifest.write_text(json.dumps({"sources": {name: node}}))
        stream = Stream(
            name=f"test.{name}",
            table=f"bronze.test__{name}",
            description="Orders of a test.",
            columns={},
            tags=frozenset(),
            ingest=IngestMeta(topic=topic),
        )
        reports = Reports()
        services = Services(
            spark, connections, Broker(connections), SchemaRegistry(connections), reports
        )
        return Feed(stack, stream, services, reports, manifest)

    yield make
    for topic in made:
        admin.delete_topics([topic])[topic].result()


@pytest.fixture
def feed(new_feed: Callable[[], Feed]) -> Feed:
    """One feed."""
    return new_feed()
