"""Manifests of tables with many small commits.

Fails when a query's planner has to open one for each commit, or `maintain` rewrites full ones.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

from spark_ingest.commits import commit_log
from spark_ingest.lake import bronze
from spark_ingest.operate.maintain import Policy, maintain

_TABLE = "bronze.manifests"


def _set(spark: SparkSession, **properties: int) -> None:
    listed = ", ".join(f"'commit.manifest.{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"alter table lake.{_TABLE} set tblproperties ({listed.replace('_', '-')})")


def test_small_manifests_are_merged_by_commits_and_else_by_maintain(spark: SparkSession) -> None:
    bronze.create_schema(spark)
    commit_log.create(spark)
    columns = StructType().add("id", LongType())
    bronze.create_table(spark, _TABLE, columns, "truncate(1000, id)")

    def manifests_after(commits: int) -> int:
        for _ in range(commits):
            spark.range(0, 1, 1, 1).writeTo(f"lake.{_TABLE}").append()
        return spark.table(f"lake.{_TABLE}.manifests").count()

    def steps() -> list[str]:
        policy = Policy(keep=timedelta(days=1), target_bytes=2**27, orphans=None)
        done = maintain(spark, _TABLE, policy, dry_run=True)
        return [step for step in done.steps if "manifests" in step]

    assert manifests_after(21) < 5
    assert steps() == []
    _set(spark, min_count_to_merge=1000)
    assert manifests_after(20) > 20
    assert len(steps()) == 1
    # No larger than they shall be, they are full.
    _set(spark, target_size_bytes=1)
    assert steps() == []
