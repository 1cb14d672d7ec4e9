"""The systems under test: the command of each, how it is timed, and what it wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from bench.ingest.fixture import SCHEMA, Fixture, write_manifest
from bench.ingest.losses import Landed
from bench.ingest.results import CARELESS
from bench.ingest.system_run import Output, System
from bench.ingest.watch import Seen, columns, metadata, record_count
from sandbox.install import spark_conf
from sandbox.processes import programs
from sandbox.settings import Home

TABLE = "receipts"
_OURS = {
    "key": "_kafka_key",
    "headers": "_kafka_headers",
    "position": "_kafka_offset",
    "time in Kafka": "_kafka_timestamp",
    "schema id": "_schema_id",
}


class Millrace(System):
    """Millrace as it is shipped, with all its features.

    Args:
        options: Additional options of `spark-ingest run`, for experiments.
        settings: Spark settings other than those of the sandbox.
    """

    name = "millrace"
    table = f"{SCHEMA}.{TABLE}"

    def __init__(
        self, options: list[str] | None = None, settings: dict[str, str] | None = None
    ) -> None:
        self._options = options or []
        self._settings = settings or {}

    def prepare(self, fixture: Fixture) -> None:
        write_manifest(_manifest(fixture), {TABLE: fixture.topic})
        write_settings(fixture.home, self._settings)

    def command(self, fixture: Fixture) -> list[str]:
        return run_command(_manifest(fixture), "--once", *self._options)

    def span(self, output: Output, seen: list[Seen]) -> tuple[float, float] | None:
        batches = [(at, json.loads(line)) for at, line in output.lines if line.startswith("{")]
        if not batches or not seen:
            return None
        at, first = batches[0]
        return at - first["seconds"], seen[-1].at

    def landed(self, fixture: Fixture) -> Landed:
        found = metadata(fixture.catalog, self.table)
        names = columns(found)
        aside = metadata(fixture.catalog, f"{SCHEMA}.quarantine")
        return Landed(
            rows=record_count(found),
            empty=0,
            set_aside=record_count(aside),
            fields=frozenset(names),
            metadata=_metadata(_OURS, names),
            marks_tombstones="_is_tombstone" in names,
        )


class CarelessJob(System):
    """One fixed schema, plain Parquet."""

    name = CARELESS

    def command(self, fixture: Fixture) -> list[str]:
        # It decodes all records with the older schema, which was current when it was written.
        return job("careless", fixture, str(fixture.schema_file(0)), str(fixture.folder))

    def landed(self, fixture: Fixture) -> Landed:
        files = fixture.folder / "files"
        first = fixture.fields[0]
        with duckdb.connect() as base:
            found = base.execute(
                f"select count(*), count(*) filter (where {first} is null) from read_parquet(?)",
                [f"{files}/*.parquet"],
            ).fetchone()
            described = base.execute(
                "select distinct name from parquet_schema(?)", [f"{files}/*.parquet"]
            ).fetchall()
        rows, empty = found or (0, 0)
        return Landed(
            rows=rows,
            empty=empty,
            set_aside=0,
            fields=frozenset(name for (name,) in described),
            metadata=frozenset(),
            is_table=False,
        )


class SparkDecode(System):
    """Spark's Kafka source and Avro decoder, without a sink."""

    name = "limit spark read and decode"

    def command(self, fixture: Fixture) -> list[str]:
        return job("decode", fixture, str(fixture.schema_file(0)))


def ingest_command(manifest: Path, *words: str) -> list[str]:
    """A command of `spark-ingest` for the streams that a manifest declares."""
    return [programs.path_of("spark-ingest"), "--manifest", str(manifest), *words]


def run_command(manifest: Path, *options: str) -> list[str]:
    """`spark-ingest run` of the streams that a manifest declares."""
    return ingest_command(manifest, "run", *options)


def write_settings(home: Home, settings: dict[str, str]) -> None:
    """Write the Spark configuration of the sandbox with these settings overridden."""
    file = spark_conf.render(home, home.spark_conf)
    lines = [line for line in file.read_text().splitlines() if line.split(" ")[0] not in settings]
    lines += [f"{key} {value}" for key, value in settings.items()]
    file.write_text("\n".join(lines) + "\n")


def job(module: str, fixture: Fixture, *arguments: str) -> list[str]:
    """The command of a program in `bench.ingest.jobs`."""
    return [
        sys.executable,
        "-m",
        f"bench.ingest.jobs.{module}",
        fixture.home.bootstrap_servers,
        fixture.topic,
        *arguments,
    ]


def _metadata(names: dict[str, str], present: set[str]) -> frozenset[str]:
    """The Kafka metadata that a table has columns for."""
    return frozenset(what for what, column in names.items() if column in present)


def _manifest(fixture: Fixture) -> Path:
    return fixture.folder / "manifest.json"
