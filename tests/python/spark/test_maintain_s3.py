"""Maintenance of tables on S3, by Iceberg's own file access alone: moto plays S3 and Glue.

Fails when a table that Hadoop has no file system for cannot be maintained.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.operate.maintain import Policy, maintain
from tests.python import catalogs
from tests.python.spark.lakes import COLUMNS, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TABLE = "bronze.on_s3"
ORPHAN = "lake/bronze.db/on_s3/data/orphan.parquet"


@pytest.fixture
def lake(spark: SparkSession) -> Iterator[tuple[Lake, Any]]:
    """A table of six small files in a bucket, with a file that no snapshot has."""
    with catalogs.glue(spark) as before:
        s3 = boto3.client(
            "s3", endpoint_url=before.service, region_name="us-east-1",
            aws_access_key_id="none", aws_secret_access_key="none",
        )  # fmt: skip
        s3.create_bucket(Bucket="lake")
        settings = {
            "type": "glue",
            "glue.endpoint": before.address,
            "client.region": "us-east-1",
            "io_impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": before.service,
            "s3.path-style-access": "true",
            "warehouse": "s3://lake/lake",
        }
        made = Lake(catalogs.use(spark, **settings), before, catalogs.is_glue_commit, TABLE)
        made.spark.sql(f"create table lake.{TABLE} ({COLUMNS}) using iceberg")
        first_snapshot(made.jvm, TABLE)
        for number in range(6):
            made.spark.sql(f"insert into lake.{TABLE} values ({number}, 'n')")
        yield made, s3


@pytest.mark.aws
@pytest.mark.long
def test_a_table_on_s3_is_compacted_expired_and_rid_of_orphans(
    lake: tuple[Lake, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, s3 = lake
    with monkeypatch.context() as patch:
        # An object has the time at which it was put.
        patch.setattr("moto.s3.models.utcnow", lambda: datetime.now(UTC) - timedelta(days=9))
        s3.put_object(Bucket="lake", Key=ORPHAN, Body=b"nothing")
    policy = Policy(timedelta(0), 2**27, timedelta(days=3))

    would = maintain(made.spark, TABLE, policy, dry_run=True)
    done = maintain(made.spark, TABLE, policy)

    assert would.before == would.after
    assert (done.before.files, done.after.files) == (6, 1)
    assert done.after.snapshots < done.before.snapshots
    assert done.after.metadata_bytes is None
    assert made.ids() == list(range(6))
    for steps in (would.steps, done.steps):
        assert any(step.startswith("compact 6 small files") for step in steps)
        assert any(step.endswith("orphan files") for step in steps)
    listed = s3.list_objects_v2(Bucket="lake", Prefix=ORPHAN)
    assert listed["KeyCount"] == 0
