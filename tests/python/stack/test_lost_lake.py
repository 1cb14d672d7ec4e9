"""docs/runbooks/lost-lake.md, typed as it stands, on lakes without their tables, catalog or place.

Fails when a step of docs/runbooks/lost-lake.md fails as it is written, or a record is lost or
doubled behind it.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sandbox.settings import PROJECT
from sandbox.tour.query import Format, write_rows
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.lake.jvm import Jvm
from tests.python import catalogs
from tests.python.stack.conftest import ORDER, Feed, blocks, commands, orders, proofs
from tests.python.stack.keeper import Keeper, keeper_of
from tests.python.stack.test_recover import forget_own_snapshots

RUNBOOK = PROJECT / "docs" / "runbooks" / "lost-lake.md"
CATALOG_GONE = "Only the catalog is gone"
COPIED = "It was copied to another place"
# What the page's texts name a table and a file of its metadata.
TABLE = "pagila__sales"
METADATA = re.compile(r"/the/lake/warehouse/bronze/pagila__sales/metadata/00007-\S+?json")

pytestmark = pytest.mark.nightly


@dataclass
class Lake:
    """A lake in a folder of its own with one feed, its commands and a model of it."""

    keeper: Keeper
    folder: Path
    patch: pytest.MonkeyPatch
    sent: int = 0
    bad: int = 0

    @property
    def feed(self) -> Feed:
        return self.keeper.feed

    @property
    def spark(self) -> SparkSession:
        return self.feed.services.spark

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def own_tables(self) -> list[str]:
        """The feed's tables and those of ingest itself, without their schema."""
        rows = self.spark.sql("show tables in lake.bronze").collect()
        return sorted(row["tableName"] for row in rows)

    def open(self, folder: Path | None = None) -> None:
        """Open a lake, of another folder maybe, as a program that starts now does."""
        self.folder = folder or self.folder
        self.folder.mkdir(exist_ok=True)
        uri = f"jdbc:sqlite:{self.folder}/catalog.db?busy_timeout=30000&journal_mode=WAL"
        spark = catalogs.open_with(self.spark, uri=uri, warehouse=str(self.warehouse))
        # Which commands and dbt get, too.
        self.patch.setattr(SparkSession, "_instantiatedSession", spark)
        services = replace(self.feed.services, spark=spark)
        self.keeper.feed = replace(self.feed, services=services)

    def lose_catalog(self) -> None:
        for file in self.folder.glob("catalog.db*"):
            file.unlink()
        self.open()

    def send(self, count: int, junk: int = 0) -> None:
        """Send orders and bad records, without taking them."""
        number = self.feed.register(ORDER)
        self.feed.send(*orders(number, self.sent, count), *[b"junk"] * junk)
        self.sent += count
        self.bad += junk

    def take(self, count: int, junk: int = 0) -> None:
        """Send as many, and commit them."""
        self.send(count, junk)
        self.feed.ingest()

    def metadata_of(self, table: str) -> str:
        operations = Jvm(self.spark).iceberg_table(f"bronze.{table}").operations()
        return str(operations.current().metadataFileLocation())

    def type(self, command: str, table: str = "", metadata: str = "") -> str:
        """What a command says, which must succeed.

        Args:
            command: As the page has it, of its own table and places.
            table: Of which it is typed here; the feed's where it is not given.
            metadata: The file that it registers.
        """
        own = self.feed.stream.table.partition(".")[2]
        command = METADATA.sub(metadata, command).replace(TABLE, table or own)
        command = command.replace("/the/lake", str(self.folder))
        if command.startswith(("ls ", "while ")):
            done = subprocess.run(
                ["bash", "-euc", command], check=True, capture_output=True, text=True
            )
            return done.stdout.strip()
        program, *words = shlex.split(command)
        if program == "sandbox":
            assert words[0] == "sql"
            out = io.StringIO()
            write_rows(self.spark.sql(words[1]), Format.CSV, out)
            return out.getvalue()
        if program == "dbt":
            only = ("--exclude-resource-type", "test", "unit_test")
            select = ("--select", f"source:{self.feed.stream.name}+")
            built = self.keeper.dbt(*words, *select, *only)
            assert built["success"], built["said"]
            return ""
        assert program == "spark-ingest"
        ran = self.feed.command(*words)
        assert ran.exit_code == 0, f"{command}: {ran.output}{ran.exception}"
        return ran.output

    def register(self, files: dict[str, str]) -> None:
        """Type the commands that register tables, each with its file."""
        _, namespace, register = commands(RUNBOOK, CATALOG_GONE)[:3]
        self.type(namespace)
        for table, file in files.items():
            self.type(register, table, file)

    def newest_files(self, tables: list[str]) -> dict[str, str]:
        """What the page's command finds of each table."""
        find = commands(RUNBOOK, CATALOG_GONE)[0]
        return {table: self.type(find, table) for table in tables}

    def check(self) -> None:
        """Each record that was sent is there once, as the last section asks."""
        (verify,) = commands(RUNBOOK, "How to know that it is over")
        said = self.type(verify)
        total = self.sent + self.bad
        assert f"all {total} records are in exactly one table" in said
        rows = self.spark.table(self.feed.table).select("id").collect()
        assert sorted(row[0] for row in rows) == list(range(self.sent))
        assert len(self.feed.quarantined()) == self.bad
        assert all(proof.holds for proof in proofs(self.feed))

    def check_model(self) -> None:
        assert self.keeper.ids() == list(range(self.sent))


@pytest.fixture
def lake(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two commits, of which a model has read both."""
    made = Lake(keeper_of(feed, tmp_path), tmp_path / "lake", monkeypatch)
    made.open()
    feed.register(ORDER)
    made.type("spark-ingest create")
    made.take(3, junk=1)
    made.take(2)
    made.type("spark-ingest verify")
    made.type("dbt build")
    made.check_model()
    return made


def drop_the_table(lake: Lake) -> None:
    lake.spark.sql(f"drop table {lake.feed.table}")


def remove_the_folder(lake: Lake) -> None:
    shutil.rmtree(lake.folder)
    lake.open()


def drop_quarantine(lake: Lake) -> None:
    lake.spark.sql("drop table lake.bronze.quarantine")
    assert "quarantine" in str(lake.feed.command("verify").exception)
    lake.type("spark-ingest create")
    found = lake.feed.command("verify")
    assert found.exit_code == 1
    assert "missing offsets 3" in found.output
    drop_the_table(lake)


@pytest.mark.parametrize("lose", [drop_the_table, remove_the_folder, drop_quarantine])
def test_tables_that_are_gone_are_filled_again(lake: Lake, lose: Callable[[Lake], None]) -> None:
    lose(lake)
    if lose is not remove_the_folder:
        found = lake.feed.command("verify")
        assert found.exit_code == 1
        name = lake.feed.stream.table
        assert f"{name}, which was filled up to commit 2, was dropped" in found.output
        assert RUNBOOK.name in found.output
    lake.send(1)

    for command in commands(RUNBOOK, "The tables are gone"):
        lake.type(command)

    lake.check()
    lake.check_model()
    lake.take(2)
    lake.check()


def test_tables_are_registered_in_a_new_catalog(lake: Lake) -> None:
    # The files of before lie in the same folder, with larger numbers.
    drop_the_table(lake)
    lake.feed.ingest()
    uuid = uuid_of(Jvm(lake.spark), lake.feed.stream.table)
    tables, log = lake.own_tables, lake.feed.log().collect()
    known = {table: lake.metadata_of(table) for table in tables}
    assert len(tables) == 5
    lake.send(2, junk=1)
    lake.lose_catalog()

    files = lake.newest_files(tables)
    lake.register(files)
    for command in commands(RUNBOOK, CATALOG_GONE)[3:-1]:
        lake.type(command)

    assert {t: Path(f).name for t, f in files.items()} == {
        t: Path(f).name for t, f in known.items()
    }
    assert uuid_of(Jvm(lake.spark), lake.feed.stream.table) == uuid
    now = lake.feed.log().collect()
    assert all(row in now for row in log)
    lake.check()
    lake.check_model()


@pytest.mark.parametrize("are_expired", [False, True])
def test_an_older_file_is_registered_and_the_log_follows(lake: Lake, are_expired: bool) -> None:
    own = lake.feed.stream.table.partition(".")[2]
    if are_expired:
        forget_own_snapshots(lake.feed)
    older = lake.metadata_of(own)
    # Commit 3, where the page has commits beyond 6.
    lake.take(1)
    assert [row["commit_id"] for row in lake.feed.log().collect()] == [1, 2, 3]
    files = lake.newest_files(lake.own_tables) | {own: older}
    lake.lose_catalog()
    lake.register(files)
    *_, rebuild, delete = commands(RUNBOOK, CATALOG_GONE)

    if are_expired:
        lake.type(delete.replace("> 6", "> 2"))
    reported = lake.type("spark-ingest run --once")
    lake.type(rebuild)

    assert ("was rolled back to commit 2" in reported) is not are_expired
    assert [row["commit_id"] for row in lake.feed.log().collect()] == [1, 2, 3]
    lake.check()
    lake.check_model()


def test_a_copied_lake_is_opened_at_its_new_place(lake: Lake) -> None:
    old, new = lake.folder, lake.folder.with_name("moved")
    tables, uuid = lake.own_tables, uuid_of(Jvm(lake.spark), lake.feed.stream.table)
    shutil.copytree(old, new)
    lake.open(new)
    refused = lake.feed.command("verify")
    assert f"is in {old}/warehouse/bronze/" in str(refused.exception)
    assert f"and the lake is {new}/warehouse" in str(refused.exception)
    lake.open(old)
    rewrite, copy = blocks(RUNBOOK, COPIED)
    files: dict[str, str] = {}
    for table in tables:
        places = {"/old/lake": str(old), "/new/lake": str(new)}
        places["/new/staging"] = f"{new}/staging/{table}"
        here, there = rewrite, copy
        for written, meant in places.items():
            here, there = here.replace(written, meant), there.replace(written, meant)
        _, answer = lake.type(here.strip(), table).splitlines()
        lake.type(there)
        files[table] = f"{new}/warehouse/bronze/{table}/metadata/{answer.split(',')[0]}"
    # Nobody reads the old place any more.
    old.rename(old.with_name("gone"))
    lake.send(2, junk=1)
    lake.open(new)
    lake.lose_catalog()

    lake.register(files)
    for command in commands(RUNBOOK, CATALOG_GONE)[3:-1]:
        lake.type(command)

    assert uuid_of(Jvm(lake.spark), lake.feed.stream.table) == uuid
    lake.check()
    lake.check_model()
