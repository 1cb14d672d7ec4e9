"""Which table stands under a name, whatever the clocks of those who wrote it down.

Fails when a table that was recreated is taken for the one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from spark_ingest.commits import commit_log, resume, table_identity
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.sources import IngestMeta, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

META = IngestMeta(topic="clocks")
STREAM = Stream("test.clocks", "bronze.test__clocks", "", {}, frozenset(), META)
LOG = f"{CATALOG}.{commit_log.TABLE}"
MINE = f"table_name = '{STREAM.table}' and kind = 'table'"


def create(spark: SparkSession) -> str:
    """Make the stream's table and name it in the log; its UUID."""
    bronze.create_table(spark, STREAM.table, bronze.METADATA, STREAM.ingest.partitioned_by)
    first_snapshot(Jvm(spark), STREAM.table)
    commit_log.name_tables(spark, [STREAM])
    return uuid_of(Jvm(spark), STREAM.table)


def test_the_newest_row_is_the_last_that_was_written(spark: SparkSession) -> None:
    bronze.create_schema(spark)
    commit_log.create(spark)
    first = create(spark)
    # Whoever made it had a clock that is ahead.
    spark.sql(f"update {LOG} set committed_at = now() + interval 1 day where {MINE}")
    spark.sql(f"drop table {CATALOG}.{STREAM.table}")

    second = create(spark)

    assert second != first
    assert commit_log.identity_of(spark, STREAM.table).is_newest
    rows = spark.sql(f"select table_uuid from {LOG} where {MINE} order by committed_at")
    assert [row[0] for row in rows.collect()] == [first, second]
    # Named once: a table that is there already gets no further row.
    commit_log.name_tables(spark, [STREAM])
    assert spark.sql(f"select * from {LOG} where {MINE}").count() == 2


def test_a_table_that_was_rolled_back_stands_since_later(spark: SparkSession) -> None:
    bronze.create_schema(spark)
    commit_log.create(spark)
    uuid = create(spark)
    mine = f"table_uuid = '{uuid}' and kind = 'table'"
    spark.sql(f"update {LOG} set committed_at = now() + interval 1 day where {mine}")
    (before,) = spark.sql(f"select committed_at from {LOG} where {mine}").collect()

    resume._log_rollback(spark, uuid)

    (after,) = spark.sql(f"select committed_at from {LOG} where {mine}").collect()
    assert after[0] > before[0]


def test_streams_that_start_share_one_scan_of_an_unchanged_log(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bronze.create_schema(spark)
    commit_log.create(spark)
    names = [f"bronze.test__shared_{n}" for n in range(2)]
    streams = [Stream(name, name, "", {}, frozenset(), META) for name in names]
    for stream in streams:
        bronze.create_table(spark, stream.table, bronze.METADATA, META.partitioned_by)
        first_snapshot(Jvm(spark), stream.table)
    scan = Mock(side_effect=table_identity.summaries)
    monkeypatch.setattr(table_identity, "summaries", scan)

    commit_log.name_tables(spark, streams[:1])
    assert [commit_log.identity_of(spark, name).is_newest for name in names] == [True, False]
    assert scan.call_count == 1
    commit_log.name_tables(spark, streams[1:])
    assert [commit_log.identity_of(spark, name).is_newest for name in names] == [True, True]
    assert scan.call_count == 2
