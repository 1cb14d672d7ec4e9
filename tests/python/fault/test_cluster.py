"""A stream on a cluster of two workers, with S3 and Glue: parts of it die, or are slow.

Fails when a lost worker or driver, or an object store that is slow or throttles, costs a record.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sandbox.services import stack as sandbox_services
from sandbox.services.cluster.spark import SPARK_CLUSTER
from spark_ingest.streaming import tables
from tests.python import catalogs
from tests.python.clusters import Cluster, with_glue
from tests.python.fault.harness import (
    Account,
    Sender,
    Sent,
    account,
    go_on,
    ingesting,
    record,
    send,
)
from tests.python.gate import Answer, Request
from tests.python.stack.conftest import ORDER, Feed, orders, wait_for, wide

pytestmark = [pytest.mark.long, pytest.mark.aws]

PARTITIONS = 6
# Enough of them for a batch that takes seconds; the bad ones come along with the counters.
GOOD, BAD = 40_000, 50
SLOW_SECONDS = 0.5


@pytest.fixture
def cluster(feed: Feed, master: str, tmp_path: Path) -> Iterator[Cluster]:
    with with_glue(feed, master, tmp_path) as found:
        yield found


def is_data_file(request: Request) -> bool:
    return request.method in ("PUT", "POST") and request.path.partition("?")[0].endswith(".parquet")


def workers(feed: Feed) -> list[psutil.Process]:
    """The cluster's workers."""
    status = sandbox_services.status_of(feed.stack.home, SPARK_CLUSTER)
    assert status.record is not None
    children = psutil.Process(status.record.pid).children()
    return [
        child for child in children if "org.apache.spark.deploy.worker.Worker" in child.cmdline()
    ]


def test_a_worker_is_killed_in_a_batch(cluster: Cluster) -> None:
    feed = cluster.feed
    wide(feed, PARTITIONS)
    values = [*orders(feed.register(ORDER), 0, GOOD), *[b"junk"] * BAD]
    sent: Sent = {}
    for partition in range(PARTITIONS):
        sent |= send(feed, *values, partition=partition)
    tables.create_tables(feed.services, [feed.stream])
    with ingesting(feed, "--once") as process:
        # One file is on its way, others are still written.
        held = cluster.before.hold(is_data_file)
        wait_for(lambda: held.arrived.is_set() or process.is_over(), 240)
        assert not process.is_over(), "it ended before it wrote a file"
        killed, other = workers(feed)
        for lost in (killed, *killed.children(recursive=True)):
            lost.kill()
        held.released.set()
        assert process.wait() == 0, process.errors()
    assert other.is_running()
    wait_for(lambda: len(workers(feed)) == 2)
    record(
        "A worker killed in a batch", "SIGKILL of one of two with its executor, while it writes",
        account(feed, sent), "by itself: its tasks were done again by the other",
    )  # fmt: skip


def test_a_driver_is_killed_and_its_successor_takes_over(cluster: Cluster) -> None:
    feed, beside = cluster.feed, cluster.beside
    sender = Sender(feed)
    with ingesting(feed, "--every", "1s", "--writer-id", "one") as first:
        first.batches(2)
        # Of two drivers that want one table the second one does not get it.
        with ingesting(beside, "--once", "--writer-id", "two") as second:
            assert second.wait() != 0
            assert any("has a writer already (writer one, " in line for line in second.errors())
        first.batches(2)
        first.kill("both")
    with ingesting(feed, "--every", "1s", "--writer-id", "one") as successor:
        successor.batches(2)
        sender.stop()
        successor.terminate()
        assert successor.wait() == 0, successor.errors()
    went_on = go_on(feed)
    record(
        "A driver on a cluster killed, another wants its table",
        "`run` of another writer beside it, then SIGKILL to Python and JVM",
        account(feed, sender.sent), f"the other was refused, its successor took over; {went_on}",
    )  # fmt: skip


def test_an_object_store_is_slow(cluster: Cluster) -> None:
    chance = random.Random(5)

    def late(request: Request) -> Answer:
        time.sleep(chance.uniform(0, SLOW_SECONDS))
        return cluster.before.pass_on(request)

    went_on = _work_through(cluster, late, every=1)
    record(
        "An object store that is slow", f"each call takes up to {SLOW_SECONDS} s more",
        *went_on,
    )  # fmt: skip


def test_an_object_store_throttles(cluster: Cluster) -> None:
    went_on = _work_through(cluster, catalogs.throttled, every=10)
    record("An object store that throttles", "every tenth call to S3 and Glue refused", *went_on)


def _work_through(
    cluster: Cluster, treat: Callable[[Request], Answer], every: int
) -> tuple[Account, str]:
    """Let a stream work while every so many calls to S3 and Glue are treated otherwise."""
    feed, turns = cluster.feed, itertools.count(1)
    sender = Sender(feed)
    with (
        cluster.before.treating(lambda _: next(turns) % every == 0, treat),
        ingesting(feed, "--every", "1s") as process,
    ):
        process.batches(4)
        sender.stop()
        process.terminate()
        assert process.wait() == 0, process.errors()
    assert next(turns) > 10 * every
    went_on = go_on(feed)
    return account(feed, sender.sent), f"by itself; {went_on}"
