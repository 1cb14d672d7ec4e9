"""Each command of spark-ingest that reads or writes the lake, on a cluster with Glue and with REST.

Fails when one of them does on a laptop's Spark alone what it has to do on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from sandbox.services import stack as sandbox_services
from tests.python.clusters import Cluster, master, with_glue, with_rest
from tests.python.conftest import add_aws_if_wanted
from tests.python.stack.conftest import ORDER, Feed, orders
from tests.python.stack.published import Sales
from tests.python.stack.test_quarantine import TAGGED, tagged
from tests.python.stack.test_recover import expire

__all__ = ["master"]

pytestmark = [pytest.mark.long, pytest.mark.aws]

Begin = Callable[[Feed, str, Path], AbstractContextManager[Cluster]]


@pytest.fixture(params=[with_glue, with_rest], ids=["glue", "rest"])
def cluster(
    request: pytest.FixtureRequest, feed: Feed, master: str, tmp_path: Path
) -> Iterator[Cluster]:
    begin: Begin = request.param
    with begin(feed, master, tmp_path) as found:
        yield found


def said(feed: Feed, *words: str, manifest: Path | None = None, fails: bool = False) -> str:
    """What a command printed; it runs as a program, on the cluster."""
    done = feed.stack.run(
        "spark-ingest", "--manifest", str(manifest or feed.manifest), *words, check=not fails
    )
    assert (done.returncode != 0) == fails, f"{done.stdout}{done.stderr}"
    # A batch that the executors cannot write as frames falls back to rows.
    assert "falling back" not in done.stderr
    return done.stdout + done.stderr


def test_records_are_landed_proved_mended_and_maintained(cluster: Cluster, master: str) -> None:
    feed = cluster.feed
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 10))

    planned = said(feed, "plan")
    assert f"master {master}" in planned
    assert feed.topic in planned
    said(feed, "create")
    # It begins behind what is there, and the rest is landed beside it.
    said(feed, "run", "--once", "--from", "latest")
    assert feed.offsets() == []
    unknown = number + 1
    feed.send(*orders(number, 10, 2), b"junk", *tagged(unknown, 12), *orders(number, 13, 2))
    said(feed, "run", "--once")
    filled = said(feed, "backfill", "--max-batch", "2")
    assert "10 offsets before its start are committed" in filled
    here = [*range(12), 14, 15]
    assert feed.offsets() == [(0, offset) for offset in here]
    assert feed.quarantined() == [(12, "not_framed"), (13, "unknown_id")]
    assert "all 16 records are in exactly one table, exactly once" in said(feed, "verify")

    assert "unknown_id" in said(feed, "quarantine", "list")
    assert "junk" in said(feed, "quarantine", "show", feed.topic, "0", "12")
    assert feed.register(TAGGED) == unknown
    assert "tag" in said(feed, "schemas", "check", fails=True)
    said(feed, "quarantine", "replay", "--class", "unknown_id")
    here = [*range(12), 13, 14, 15]
    assert feed.offsets() == [(0, offset) for offset in here]
    said(feed, "quarantine", "discard", "--reason", "a test", "--yes")
    assert "no open record" in said(feed, "quarantine", "discard", "--reason", "no", "--yes")

    feed.send(*orders(number, 16, 4))
    expire(feed, 0, 18)
    assert "--accept-gap" in said(feed, "alerts", "--dry-run", "--patience", "1s")
    assert "--accept-gap" in said(feed, "run", "--once", fails=True)
    assert "resumes at 0: 18" in said(feed, "recover", "--accept-gap", "--yes")
    said(feed, "run", "--once")

    files = len(feed.services.spark.table(f"{feed.table}.files").collect())
    assert feed.stream.table in said(feed, "maintain", "--dry-run")
    assert len(feed.services.spark.table(f"{feed.table}.files").collect()) == files
    said(feed, "maintain", "--keep", "1s")
    assert len(feed.services.spark.table(f"{feed.table}.files").collect()) < files
    assert feed.offsets() == [(0, offset) for offset in [*here, 18, 19]]
    assert "2 offsets were accepted as lost" in said(feed, "verify", "--full")


def test_a_mart_is_published(cluster: Cluster, tmp_path: Path) -> None:
    sales = Sales(cluster.feed, "sales_of_a_cluster", tmp_path / "published.json")
    sales.feed.services.spark.sql("create namespace if not exists lake.marts")
    sales.make()
    sales.declare()
    sales.insert(("EMEA", "2026-01-01 10:00:00", 1.5), ("APAC", "2026-01-01 11:00:00", None))

    assert sales.topic in said(sales.feed, "publish", "plan", manifest=sales.manifest)
    said(sales.feed, "publish", "--once", manifest=sales.manifest)
    sales.insert(("EMEA", "2026-01-01 12:00:00", 2.5))
    said(sales.feed, "publish", "--once", manifest=sales.manifest)

    sales.assert_read()
    said(sales.feed, "publish", "verify", manifest=sales.manifest)


def test_rows_of_a_database_are_counted(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    stack = cluster.feed.stack
    sandbox_services.up(stack.home, ["postgres"])
    # `up` writes Spark's settings.
    add_aws_if_wanted(request, stack.home)

    stack.run("spark-ingest", "reconcile", "moma.artists")

    counted = cluster.feed.services.spark.table("lake.bronze.ingest_reconciliations")
    assert counted.count() == 1
