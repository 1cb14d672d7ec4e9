"""Third-party systems: Kafka's console consumer, Kafka Connect, a Python consumer."""

from __future__ import annotations

import time
from pathlib import Path

from bench.ingest import peers
from bench.ingest.fill import make_topic
from bench.ingest.fixture import SCHEMA, Fixture, free_ports
from bench.ingest.jobs.one_table import make_catalog
from bench.ingest.losses import Landed
from bench.ingest.system_run import Output, System
from bench.ingest.systems import TABLE, job
from bench.ingest.watch import Seen, columns, metadata, numbered_times, record_count
from sandbox.install.parts import component_folder
from spark_ingest.lake.preflight import java_program, pyspark_folder

_CONSUMER_VALUES = 8
_HEAP = "2g"
_TASKS = 2
_COMMIT_MS = 5_000
# No new commit for three commit intervals: missing records will never arrive.
_DONE_SECONDS = 3 * _COMMIT_MS / 1000
_GIVE_UP_SECONDS = 90.0
_FETCH = {
    "max.poll.records": "5000",
    "fetch.max.bytes": str(64 * 2**20),
    "max.partition.fetch.bytes": str(8 * 2**20),
}


class RawConsumer(System):
    """Reads and discards bytes: the upper limit of a Java consumer."""

    name = "limit raw consumer"

    def command(self, fixture: Fixture) -> list[str]:
        settings = fixture.folder / "consumer.properties"
        write_properties(settings, {**_FETCH, "isolation.level": "read_committed"})
        jars = [peers.jars("tools"), component_folder("kafka")]
        return [
            str(java_program()),
            f"-Xmx{_HEAP}",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            ":".join(f"{folder}/*" for folder in jars),
            "org.apache.kafka.tools.ConsumerPerformance",
            "--bootstrap-server",
            fixture.home.bootstrap_servers,
            "--topic",
            fixture.topic,
            "--messages",
            str(fixture.sent.records),
            "--group",
            f"raw-{time.time_ns()}",
            "--consumer.config",
            str(settings),
            "--timeout",
            "60000",
        ]

    def span(self, output: Output, seen: list[Seen]) -> tuple[float, float] | None:
        del seen
        return consumer_span([line for _, line in output.lines])


class Connect(System):
    """Iceberg's sink connector on Kafka Connect, tuned for throughput."""

    name = "iceberg kafka connect"
    table = f"{SCHEMA}.{TABLE}"

    def prepare(self, fixture: Fixture) -> None:
        folder = fixture.folder
        peers.converter(folder / "classes", peers.jars("connect"))
        number = time.time_ns()
        control = f"bench.control-{number}"
        make_topic(fixture.home.bootstrap_servers, control, 1)
        # Two tasks that create it, or its namespace, at the same time would fail.
        make_catalog(fixture.catalog, SCHEMA)
        write_properties(folder / "worker.properties", self._worker(fixture))
        write_properties(folder / "sink.properties", self._sink(fixture, control, number))

    def command(self, fixture: Fixture) -> list[str]:
        folder = fixture.folder
        hadoop = sorted((pyspark_folder() / "jars").glob("hadoop-client-*.jar"))
        hadoop += sorted((pyspark_folder() / "jars").glob("commons-logging-*.jar"))
        path = [f"{folder}/classes", f"{peers.jars('connect')}/*", *map(str, hadoop)]
        return [
            str(java_program()),
            f"-Xmx{_HEAP}",
            "-XX:+UseParallelGC",
            "-Duser.timezone=UTC",
            "-Dorg.slf4j.simpleLogger.logFile=System.out",
            "-cp",
            ":".join(path),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            str(folder / "worker.properties"),
            str(folder / "sink.properties"),
        ]

    def is_done(self, fixture: Fixture, output: Output, seen: list[Seen]) -> bool:
        del fixture
        begun = output.moment("Resetting offset for partition")
        if output.moment("will not recover until manually restarted"):
            return True
        if begun is None:
            return False
        # Records that arrive later than this count as lost.
        last = seen[-1].at + _DONE_SECONDS if seen else begun + _GIVE_UP_SECONDS
        return time.time() > last

    def span(self, output: Output, seen: list[Seen]) -> tuple[float, float] | None:
        begin = output.moment("Resetting offset for partition")
        if output.moment("will not recover until manually restarted"):
            return None
        return None if begin is None or not seen else (begin, seen[-1].at)

    def landed(self, fixture: Fixture) -> Landed:
        found = metadata(fixture.catalog, self.table)
        names = columns(found)
        has = {"position": "_kafka_metadata_offset", "time in Kafka": "_kafka_metadata_timestamp"}
        return Landed(
            rows=record_count(found),
            empty=0,
            set_aside=0,
            fields=frozenset(names),
            metadata=frozenset(what for what, name in has.items() if name in names),
            numbers=numbered_times(found, fixture.times),
        )

    def _worker(self, fixture: Fixture) -> dict[str, str]:
        (port,) = free_ports(1)
        return {
            "bootstrap.servers": fixture.home.bootstrap_servers,
            "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "value.converter": "bench.FramedAvro",
            "value.converter.schemas": str(fixture.schema_file(0).parent),
            "offset.storage.file.filename": str(fixture.folder / "offsets"),
            "listeners": f"http://127.0.0.1:{port}",
            "plugin.discovery": "only_scan",
            # The default of a minute would delay the end of the run.
            "offset.flush.interval.ms": "2000",
            "consumer.auto.offset.reset": "earliest",
            **{f"consumer.{key}": value for key, value in _FETCH.items()},
        }

    def _sink(self, fixture: Fixture, control: str, number: int) -> dict[str, str]:
        lake = fixture.home.lake
        return {
            "name": f"bench-{number}",
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": str(_TASKS),
            "topics": fixture.topic,
            "iceberg.catalog": "lake",
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": (
                f"jdbc:sqlite:{fixture.catalog}?busy_timeout=30000&journal_mode=WAL"
            ),
            "iceberg.catalog.jdbc.schema-version": "V1",
            "iceberg.catalog.warehouse": f"{lake}/warehouse",
            "iceberg.tables": self.table,
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true",
            # It reads the worker's settings only from a path without spaces.
            "iceberg.kafka.bootstrap.servers": fixture.home.bootstrap_servers,
            "iceberg.control.topic": control,
            "iceberg.control.commit.interval-ms": str(_COMMIT_MS),
            # Otherwise the first bad record fails the task.
            "errors.tolerance": "all",
            "transforms": "place",
            "transforms.place.type": (
                "org.apache.iceberg.connect.transforms.KafkaMetadataTransform"
            ),
        }


class PythonConsumer(System):
    """One process, one thread, one record at a time."""

    name = "python consumer"
    table = f"{SCHEMA}.{TABLE}"

    def command(self, fixture: Fixture) -> list[str]:
        return job(
            "python_consumer",
            fixture,
            str(fixture.schema_file(0).parent),
            str(fixture.catalog),
            f"{fixture.home.lake}/warehouse",
            self.table,
        )

    def landed(self, fixture: Fixture) -> Landed:
        found = metadata(fixture.catalog, self.table)
        names = columns(found)
        has = {"position": "_offset", "time in Kafka": "_written_at"}
        return Landed(
            rows=record_count(found),
            empty=0,
            set_aside=0,
            fields=frozenset(names),
            metadata=frozenset(what for what, name in has.items() if name in names),
        )


def consumer_span(lines: list[str]) -> tuple[float, float] | None:
    """From the first fetch to the last, as `kafka-consumer-perf-test` reports it.

    It prints a header and a line of values: start and end (local time), then numbers, the
    seventh of which is the rebalance time in milliseconds.
    """
    for line in lines:
        values = [value.strip() for value in line.split(",")]
        if len(values) < _CONSUMER_VALUES or not values[0][:4].isdigit():
            continue
        begin, end = (
            time.mktime(time.strptime(value[:19], "%Y-%m-%d %H:%M:%S")) + int(value[20:]) / 1000
            for value in values[:2]
        )
        return begin + int(values[6]) / 1000, end
    return None


def write_properties(file: Path, settings: dict[str, str]) -> None:
    """Write a Java properties file."""
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
