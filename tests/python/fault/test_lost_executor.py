"""An executor is killed in the middle of a batch, on a cluster of two.

Fails when a task that is done again doubles a record, or counts it twice.
"""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from spark_ingest.lake.jvm import Jvm
from spark_ingest.streaming import tables
from tests.python.clusters import on_a_cluster
from tests.python.fault.harness import (
    Ingest,
    Sent,
    account,
    ingesting,
    record,
    send,
)
from tests.python.stack.conftest import ORDER, Feed, orders, wait_for, wide

PARTITIONS = 6
# Enough of them for a batch that takes seconds; the bad ones come along with the counters.
GOOD, BAD = 60_000, 50


def executors(process: Ingest) -> list[psutil.Process]:
    return [
        jvm
        for jvm in process.jvms()
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in jvm.cmdline()
    ]


@pytest.mark.long
def test_a_batch_whose_executor_is_killed_counts_each_record_once(
    feed: Feed, tmp_path: Path
) -> None:
    wide(feed, PARTITIONS)
    number = feed.register(ORDER)
    values = [*orders(number, 0, GOOD), *[b"junk"] * BAD]
    sent: Sent = {}
    for partition in range(PARTITIONS):
        sent |= send(feed, *values, partition=partition)
    tables.create_tables(feed.services, [feed.stream])
    table = Jvm(feed.services.spark).iceberg_table(feed.stream.table)
    data = Path(str(table.location()).removeprefix("file:")) / "data"

    cluster = {"master": "local-cluster[2,1,1024]", "executor.memory": "1g"}
    with ingesting(on_a_cluster(feed, tmp_path / "conf", cluster), "--once") as process:
        # Some tasks have ended, others have not.
        wait_for(lambda: any(f.stat().st_size for f in data.rglob("*.parquet")), 240)
        killed, other = executors(process)
        killed.kill()
        assert process.wait() == 0, process.errors()
        assert other.pid != killed.pid

    account_of_all = account(feed, sent)
    (row,) = feed.log().collect()
    assert (row["row_count"], row["quarantined_count"]) == (GOOD * PARTITIONS, BAD * PARTITIONS)
    assert row["value_bytes"] == sum(len(value or b"") for value in sent.values())
    record(
        "An executor killed in a batch", "SIGKILL of one of two, while it writes",
        account_of_all, "by itself: its tasks were done again by the other",
    )  # fmt: skip
