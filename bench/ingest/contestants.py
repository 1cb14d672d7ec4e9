"""The contestants: what each is started with, how its time is told, what it has afterwards."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from bench.ingest.contest import Contestant, Said
from bench.ingest.ground import SCHEMA, Ground, write_manifest
from bench.ingest.losses import Landed
from bench.ingest.results import CARELESS
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


class Millrace(Contestant):
    """The engine as it is delivered, with all that it does.

    Args:
        options: More options of `spark-ingest run`, for trials.
        settings: Spark settings other than those of the sandbox.
    """

    name = "millrace"
    table = f"{SCHEMA}.{TABLE}"

    def __init__(
        self, options: list[str] | None = None, settings: dict[str, str] | None = None
    ) -> None:
        self._options = options or []
        self._settings = settings or {}

    def prepare(self, ground: Ground) -> None:
        write_manifest(_manifest(ground), {TABLE: ground.topic})
        write_settings(ground.home, self._settings)

    def command(self, ground: Ground) -> list[str]:
        return run_command(_manifest(ground), "--once", *self._options)

    def span(self, said: Said, seen: list[Seen]) -> tuple[float, float] | None:
        batches = [(at, json.loads(line)) for at, line in said.lines if line.startswith("{")]
        if not batches or not seen:
            return None
        at, first = batches[0]
        return at - first["seconds"], seen[-1].at

    def landed(self, ground: Ground) -> Landed:
        found = metadata(ground.catalog, self.table)
        names = columns(found)
        aside = metadata(ground.catalog, f"{SCHEMA}.quarantine")
        return Landed(
            rows=record_count(found),
            empty=0,
            set_aside=record_count(aside),
            fields=frozenset(names),
            metadata=_metadata(_OURS, names),
            tells_tombstones="_is_tombstone" in names,
        )


class CarelessJob(Contestant):
    """One fixed schema, plain Parquet."""

    name = CARELESS

    def command(self, ground: Ground) -> list[str]:
        # Everybody's schema is the older one: the job was written then.
        return job("careless", ground, str(ground.schema_file(0)), str(ground.folder))

    def landed(self, ground: Ground) -> Landed:
        files = ground.folder / "files"
        first = ground.fields[0]
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


class SparkDecode(Contestant):
    """Spark's Kafka source and its decoder, and nothing behind them."""

    name = "limit spark read and decode"

    def command(self, ground: Ground) -> list[str]:
        return job("decode", ground, str(ground.schema_file(0)))


def run_command(manifest: Path, *options: str) -> list[str]:
    """`spark-ingest run` of the streams that a manifest declares."""
    return [programs.path_of("spark-ingest"), "--manifest", str(manifest), "run", *options]


def write_settings(home: Home, settings: dict[str, str]) -> None:
    """Give the sandbox's Spark its usual settings, but for these."""
    file = spark_conf.render(home, home.spark_conf)
    lines = [line for line in file.read_text().splitlines() if line.split(" ")[0] not in settings]
    lines += [f"{key} {value}" for key, value in settings.items()]
    file.write_text("\n".join(lines) + "\n")


def job(module: str, ground: Ground, *arguments: str) -> list[str]:
    """The command of one of our own programs."""
    return [
        sys.executable,
        "-m",
        f"bench.ingest.jobs.{module}",
        ground.home.bootstrap_servers,
        ground.topic,
        *arguments,
    ]


def _metadata(names: dict[str, str], present: set[str]) -> frozenset[str]:
    """What of Kafka's a table has, by the columns that would hold it."""
    return frozenset(what for what, column in names.items() if column in present)


def _manifest(ground: Ground) -> Path:
    return ground.folder / "manifest.json"
