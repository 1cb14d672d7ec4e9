"""A lease is kept whatever its stream does, and a stream without one finds out."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from spark_ingest import lease, ledger, run
from spark_ingest.commit_log import CommitLog
from spark_ingest.errors import LeaseLost
from spark_ingest.lease import Lease
from spark_ingest.renewals import Renewals
from spark_ingest.session import Jvm
from tests.python.stack.conftest import ORDER, Feed, orders, wait_for


def last_sign(feed: Feed) -> float:
    """When the stream's writer told that it is alive."""
    iceberg = Jvm(feed.services.spark).iceberg_table(feed.stream.table)
    (branch,) = lease._writer_branches(iceberg)
    return lease._last_sign(iceberg, branch)


def test_a_lease_is_renewed_while_a_stream_starts_works_and_waits_for_its_rate(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def see_a_renewal(then: Any, moment: str) -> Any:
        def slow(*given: Any, **named: Any) -> Any:
            before = last_sign(feed)
            wait_for(lambda: last_sign(feed) > before, seconds=30)
            seen.append(moment)
            return then(*given, **named)

        return slow

    monkeypatch.setattr(lease, "_RENEW_SECONDS", 0)
    monkeypatch.setattr(run, "Renewals", partial(Renewals, every_seconds=0.1))
    for owner, name in (
        (ledger, "catch_up"),
        (Lease, "stage"),
        (run.StreamRun, "_wait"),
    ):
        monkeypatch.setattr(owner, name, see_a_renewal(getattr(owner, name), name))
    feed.send(*orders(feed.register(ORDER), 0, 2))
    run.create_tables(feed.services, [feed.stream])
    settings = run.RunSettings(None, 1000, unknown_wait=0.5, max_rate=1000)
    run.run_streams(feed.services, [feed.stream], settings, threading.Event())
    assert seen == ["catch_up", "stage", "_wait"]
    assert feed.offsets() == [(0, 0), (0, 1)]


def test_a_stream_without_records_finds_out_that_it_was_overtaken(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.register(ORDER)
    services, jvm = feed.services, Jvm(feed.services.spark)
    run.create_tables(services, [feed.stream])
    monkeypatch.setattr(lease, "_RENEW_SECONDS", 0)
    monkeypatch.setattr(
        "spark_ingest.lease._Holder.alive", lambda self, last_sign: False
    )
    log = CommitLog(services.spark)
    settings = run.RunSettings(60, 1000, unknown_wait=0.5)
    quiet = run.StreamRun(services, feed.stream, settings, log, threading.Event())
    try:
        quiet.start()
        awake = Lease.take(jvm, feed.stream.table)

        def stopped() -> bool:
            quiet.renew()
            try:
                quiet.running()
            except LeaseLost:
                return True
            return False

        assert wait_for(stopped)
        awake.release()
    finally:
        quiet.stop()
        log.close()
