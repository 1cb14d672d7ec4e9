"""Maintenance beside a stream: it loses no batch, and nothing that is needed goes.

Fails when maintenance makes a stream lose a batch, or removes a file that is needed.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from spark_ingest.commits.committed import own_snapshots
from spark_ingest.commits.lease import Lease
from spark_ingest.commits.resume import position_of
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import Jvm
from spark_ingest.operate.maintain import Maintained, Policy, lake_tables, maintain
from tests.python.stack.conftest import ORDER, Feed, orders, proofs

HARSH = Policy(keep=timedelta(0), target_bytes=2**27, orphans=None)


def maintained(feed: Feed, dry_run: bool = False) -> Maintained:
    return maintain(feed.services.spark, feed.stream.table, HARSH, dry_run)


def commit_ids(feed: Feed) -> list[int]:
    rows = feed.services.spark.table(feed.table).select("_commit_id").distinct()
    return sorted(row[0] for row in rows.collect())


@pytest.mark.nightly
def test_a_stream_beside_maintenance_loses_no_batch(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 12))
    publish = Lease.publish
    moved: list[str] = []

    def behind_a_compaction(lease: Lease) -> None:
        # From the sixth on there are files enough to compact: main moves under the batch.
        if len(feed.reports.batches) > 4:
            moved.extend(maintained(feed).steps)
        publish(lease)

    monkeypatch.setattr(Lease, "publish", behind_a_compaction)
    feed.ingest(max_records=2)
    monkeypatch.undo()
    assert any(step.startswith("compact ") for step in moved)
    assert feed.reports.notes == []
    assert feed.offsets() == [(0, n) for n in range(12)]
    assert commit_ids(feed) == [1, 2, 3, 4, 5, 6]
    assert all(proof.holds for proof in proofs(feed))
    last = own_snapshots(Jvm(feed.services.spark), feed.stream.table)[0]
    assert (last.commit.id, last.rows, last.commit.position[0]) == (6, 2, 12)

    # What is left is one file, and the snapshot that the next start reads its offsets from.
    feed.send(*orders(number, 12, 1), b"junk")
    feed.ingest()
    spark, table = feed.services.spark, feed.stream.table
    jvm = Jvm(spark)
    head = jvm.iceberg_table(table).currentSnapshot().snapshotId()
    references = jvm.iceberg_table(table).manageSnapshots()
    for branch in ("side_1000000000_0123456789ab", "writer_of_nobody"):
        references = references.createBranch(branch, head)
    references.createTag("kept", head).commit()
    planned = maintained(feed, dry_run=True)
    assert planned.before == planned.after == maintained(feed, dry_run=True).before
    done = maintained(feed)
    assert done.steps == planned.steps
    assert "remove the abandoned branch side_1000000000_0123456789ab" in done.steps
    refs = set(jvm.iceberg_table(table).refs())
    assert refs == {"main", "kept", "writer_of_nobody"}
    assert done.after.snapshots < done.before.snapshots
    assert own_snapshots(jvm, table)[0].commit.id == 7
    assert position_of(spark, feed.stream).offsets[0] == 14
    assert maintained(feed).steps == ()
    # As the command shows it.
    command = ("maintain", "--dry-run")
    done_by_hand = feed.command(*command, "test", "--format", "json")
    assert [one["table"] for one in json.loads(done_by_hand.stdout)] == [table]
    shown = feed.command(*command).stdout
    assert {"bronze.quarantine", "bronze.ingest_commits"} <= set(shown.split())
    feed.send(*orders(number, 14, 1))
    feed.ingest()
    assert commit_ids(feed) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(proof.holds for proof in proofs(feed))


@pytest.mark.nightly
def test_a_table_of_another_maker_is_maintained_too(feed: Feed) -> None:
    spark = feed.services.spark
    name = f"{feed.stream.table}_of_dbt"
    bronze.create_schema(spark)
    spark.sql(f"create table lake.{name} (a int) using iceberg")
    try:
        empty = maintain(spark, name, HARSH)
        assert (empty.before.files, empty.before.snapshots) == (0, 0)
        assert empty.steps == ("keep the newest metadata files only",)
        for number in range(5):
            spark.sql(f"insert into lake.{name} values ({number})")
        assert name in lake_tables(spark)
        done = maintain(spark, name, HARSH)
        assert (done.before.files, done.after.files) == (5, 1)
        assert done.after.snapshots == 1
        assert spark.table(f"lake.{name}").count() == 5
    finally:
        spark.sql(f"drop table lake.{name} purge")


@pytest.mark.nightly
def test_a_file_with_many_deleted_rows_is_written_without_them(feed: Feed) -> None:
    spark = feed.services.spark
    name = f"{feed.stream.table}_of_deletes"
    bronze.create_schema(spark)
    spark.sql(
        f"create table lake.{name} (a bigint, is_current boolean) using iceberg"
        " partitioned by (is_current)"
        " tblproperties ('write.delete.mode' = 'merge-on-read')"
    )
    try:
        rows = spark.range(0, 10, 1, 1).toDF("a").withColumn("is_current", F.lit(True))
        rows.writeTo(f"lake.{name}").append()
        for number in range(2):
            spark.sql(f"delete from lake.{name} where a = {number}")
        few = maintain(spark, name, HARSH)
        assert not [step for step in few.steps if step.startswith("compact")]
        spark.sql(f"delete from lake.{name} where a = 2")
        done = maintain(spark, name, HARSH)
        assert "compact 1 files with many deleted rows" in done.steps
        data = spark.table(f"lake.{name}.files").where("content = 0")
        assert data.agg(F.sum("record_count")).collect() == [(7,)]
        assert spark.table(f"lake.{name}").agg(F.sum("a")).collect() == [(42,)]
        assert maintain(spark, name, HARSH).steps == ()
    finally:
        spark.sql(f"drop table lake.{name} purge")


@pytest.mark.nightly
def test_a_file_that_no_snapshot_names_is_removed_when_it_is_old(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 2))
    feed.ingest()
    spark, table = feed.services.spark, feed.stream.table
    data = Path(Jvm(spark).iceberg_table(table).location().removeprefix("file:"))
    old, young = data / "data" / "old.parquet", data / "data" / "young.parquet"
    long_ago = (datetime.now(UTC) - timedelta(days=4)).timestamp()
    for file in (old, young, *data.rglob("*.parquet")):
        file.touch()
        if file != young:
            os.utime(file, (long_ago, long_ago))
    policy = Policy(timedelta(hours=1), 2**27, timedelta(days=3))
    planned = maintain(spark, table, policy, dry_run=True)
    assert old.exists()
    assert maintain(spark, table, policy).steps == planned.steps
    assert planned.steps == ("remove 1 orphan files",)
    assert young.exists()
    assert not old.exists()
    assert feed.offsets() == [(0, 0), (0, 1)]
