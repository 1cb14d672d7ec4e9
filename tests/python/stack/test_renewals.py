"""A lease is kept whatever its stream does, and a stream without one finds out.

Fails when a lease runs out while its stream works or waits.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spark_ingest.commits import commit_log, lease, renewals
from spark_ingest.commits.lease import Lease
from spark_ingest.lake.jvm import Jvm
from spark_ingest.streaming import run, tables
from tests.python.leases import take
from tests.python.stack.conftest import ORDER, Feed, orders, wait_for


def last_renewal(feed: Feed) -> float:
    """When the writer's process last renewed its lease; 0 without a writer."""
    jvm = Jvm(feed.services.spark)
    iceberg = jvm.iceberg_table(feed.stream.table)
    writers = lease.writer_branches(iceberg)
    holder = lease.holder_of(iceberg)
    if holder is None or holder.branch not in writers:
        return 0
    return renewals.renewed_at(jvm, holder.process, holder.branch)


def test_a_lease_is_renewed_while_a_stream_starts_works_and_waits_for_its_rate(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def see_a_renewal(then: Any, moment: str) -> Any:
        def slow(*given: Any, **named: Any) -> Any:
            before = last_renewal(feed)
            wait_for(lambda: last_renewal(feed) > before, seconds=30)
            seen.append(moment)
            return then(*given, **named)

        return slow

    monkeypatch.setattr(lease, "QUIET_SECONDS", 0)
    monkeypatch.setattr(renewals, "QUIET_SECONDS", 0)
    monkeypatch.setattr(renewals, "_SECONDS", 0.1)
    for owner, name in ((commit_log, "catch_up"), (Lease, "stage_files"), (run.StreamRun, "_wait")):
        monkeypatch.setattr(owner, name, see_a_renewal(getattr(owner, name), name))
    feed.send(*orders(feed.register(ORDER), 0, 2))
    tables.create_tables(feed.services, [feed.stream])
    settings = run.RunSettings(None, 1000, unknown_wait=0.5, max_rate=1000)
    run.run_streams(feed.services, [feed.stream], settings, threading.Event())
    assert seen == ["catch_up", "stage_files", "_wait"]
    assert feed.offsets() == [(0, 0), (0, 1)]


def test_a_stream_without_records_finds_out_that_it_was_overtaken(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.register(ORDER)
    tables.create_tables(feed.services, [feed.stream])
    monkeypatch.setattr(lease, "QUIET_SECONDS", 0)
    monkeypatch.setattr(renewals, "QUIET_SECONDS", 0)
    monkeypatch.setattr(renewals, "_SECONDS", 0.1)
    stopping = threading.Event()
    settings = run.RunSettings(60, 1000, unknown_wait=0.5)
    with ThreadPoolExecutor(1) as threads:
        quiet = threads.submit(run.run_streams, feed.services, [feed.stream], settings, stopping)
        try:
            wait_for(lambda: last_renewal(feed))
            with monkeypatch.context() as patch:
                patch.setattr(
                    "spark_ingest.commits.lease.Holder.alive", lambda self, last_activity: False
                )
                awake = take(Jvm(feed.services.spark), feed.stream.table)

            def is_reported() -> bool:
                ended = quiet.exception() if quiet.done() else None
                return "was taken over" in f"{ended} {feed.reports.notes}"

            assert wait_for(is_reported, seconds=30)
            awake.check()
            awake.release()
        finally:
            stopping.set()
