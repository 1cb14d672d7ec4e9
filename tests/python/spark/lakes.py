"""A lake in a catalog of some kind, and one table of it, for tests of its commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from spark_ingest.commits.committed import Commit, newest_own_snapshot
from spark_ingest.commits.lease import Lease
from spark_ingest.data_files.parquet import ipc_stream
from spark_ingest.data_files.stage import append_rows, layout, write_frame
from spark_ingest.lake.jvm import Jvm
from spark_ingest.lake.table_change import Step, first_snapshot
from tests.python import catalogs
from tests.python.gate import Gate, Request, gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id int, note string"
# Methods of a lake that stage a batch, as the engine does.
each_way = pytest.mark.parametrize("stage", ["stage", "stage_files"])


@dataclass(frozen=True)
class Lake:
    """A lake in a catalog of one kind, and one table of it.

    Attributes:
        gate: Before the catalog's service; None where it has none.
        is_commit: Shows the service's commits from other requests.
    """

    spark: SparkSession
    gate: Gate | None = None
    is_commit: Callable[[Request], bool] = lambda request: False
    table: str = ""

    @property
    def jvm(self) -> Jvm:
        return Jvm(self.spark)

    def ids(self) -> list[int]:
        rows = self.spark.sql(f"select id from lake.{self.table} order by id").collect()
        return [row[0] for row in rows]

    def stage(self, held: Lease, *ids: int) -> None:
        """Stage rows as the table's next commit, by Spark's writer."""
        rows = self.spark.createDataFrame([(i, "n") for i in ids], COLUMNS).coalesce(1)
        held.stage(partial(append_rows, rows, self._next_commit(len(ids))))

    def stage_files(self, held: Lease, *ids: int) -> None:
        """Stage rows as the table's next commit, in a data file."""
        held.stage_files(self.write(*ids), self._next_commit(len(ids)))

    def write(self, *ids: int) -> list[Any]:
        """Write rows to a data file of the table, which is in no commit."""
        notes = pa.array(["n"] * len(ids))
        rows = pa.record_batch({"id": pa.array(ids, pa.int32()), "note": notes})
        iceberg = self.jvm.iceberg_table(self.table)
        return write_frame(self.spark, ipc_stream(rows), layout(self.jvm, iceberg), iceberg)

    def _next_commit(self, records: int) -> Commit:
        newest = newest_own_snapshot(self.jvm, self.table)
        number = newest.commit.id + 1 if newest else 1
        return Commit(number, "topic", {0: 0}, {0: records})


def jdbc_lake(spark: SparkSession, folder: Path) -> Lake:
    """A lake in a JDBC catalog of its own."""
    uri = f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000&journal_mode=WAL"
    return Lake(catalogs.use(spark, uri=uri, warehouse=f"{folder}/warehouse"))


@contextmanager
def rest_lake(spark: SparkSession, folder: Path) -> Iterator[Lake]:
    """A lake in a REST catalog behind a gate."""
    with catalogs.rest_catalog(folder) as address, gate(catalogs.port_of(address)) as before:
        settings = {
            "type": "rest",
            "uri": before.address,
            "warehouse": f"{folder}/warehouse",
            # With the usual five, a service that is away for a moment costs half a minute.
            "rest.client.max-retries": "1",
        }
        session = catalogs.use(spark, **settings)
        yield Lake(session, before, catalogs.is_rest_commit)


def with_table(made: Lake, name: str) -> Lake:
    short = "".join(letter if letter.isalnum() else "_" for letter in name)
    table = f"bronze.{short}"
    made.spark.sql(
        f"create table lake.{table} ({COLUMNS}) using iceberg tblproperties ("
        "'commit.retry.num-retries' = '20',"
        # Iceberg's own waits, a second and more, are for catalogs under load.
        " 'commit.retry.min-wait-ms' = '1', 'commit.retry.max-wait-ms' = '20',"
        " 'commit.status-check.min-wait-ms' = '1',"
        " 'commit.status-check.max-wait-ms' = '20')"
    )
    first_snapshot(made.jvm, table)
    return replace(made, table=table)


def meddle(monkeypatch: pytest.MonkeyPatch, module: str, change: Callable[[], object]) -> list[int]:
    """Let somebody else commit right before the next commit; how often that was done."""
    done: list[int] = []

    def commit_of(update: Any) -> Step:
        def step() -> None:
            if not done:
                done.append(1)
                change()
            update.commit()

        return step

    monkeypatch.setattr(f"{module}.commit_of", commit_of)
    return done
