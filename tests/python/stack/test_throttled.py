"""Catalogs and object stores that throttle requests while a stream works.

Fails when a REST catalog, Glue or S3 that refuses requests for a while ends a stream, or loses or
doubles a record.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from spark_ingest.streaming.metrics import MetricsProgress
from spark_ingest.streaming.progress import Progress
from tests.python import catalogs
from tests.python.gate import Answer, Gate, Request, gate
from tests.python.stack.conftest import ORDER, Feed, orders, proofs, running, wait_for
from tests.python.stack.test_trouble import logged, of

pytestmark = pytest.mark.nightly


def slow_down(status: int) -> Answer:
    """What a service says that has too much to do."""
    error = {"message": "slow down", "type": "SlowDownException", "code": status}
    headers = {"Content-Type": "application/json", "Retry-After": "1"}
    return Answer(status, headers, json.dumps({"error": error}).encode())


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tuple[str, Gate]]:
    """A REST catalog of its own, and the gate before it."""
    folder = tmp_path / "rest"
    folder.mkdir()
    with catalogs.rest_catalog(folder) as address, gate(catalogs.port_of(address)) as made:
        yield address, made


@pytest.mark.parametrize("status", [429, 503])
def test_a_stream_goes_on_behind_a_throttled_catalog(
    feed: Feed,
    catalog: tuple[str, Gate],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
) -> None:
    monkeypatch.setattr("spark_ingest.streaming.supervise._FIRST_SECONDS", 0.5)
    monkeypatch.setattr("spark_ingest.streaming.supervise._SERVICE_SECONDS", 0.5)
    (address, before), name = catalog, feed.stream.name

    def through(uri: str, progress: Progress) -> Feed:
        settings = {"type": "rest", "uri": uri, "rest.client.max_retries": "2"}
        warehouse = f"{tmp_path}/rest/warehouse"
        spark = catalogs.use(feed.services.spark, **settings, warehouse=warehouse)
        services = replace(feed.services, spark=spark, progress=progress)
        return replace(feed, services=services)

    metrics = MetricsProgress(feed.reports, [name], "127.0.0.1", 0)
    # What the test asks is not refused.
    reader, stream = (
        through(address, feed.reports), through(before.address, metrics)
    )  # fmt: skip
    number, answer, turns = feed.register(ORDER), slow_down(status), itertools.count()

    def troubles() -> float:
        """Pauses of the stream, with the reason service or failure."""
        read = metrics.registry.get_sample_value
        failures = read("millrace_restarts_total", {"stream": name, "reason": "failure"})
        return (failures or 0) + (read("millrace_waits_total", {"stream": name}) or 0)

    def now_and_then(request: Request) -> Answer:
        """One of seven is refused, and of one it is said so though it was done."""
        turn = next(turns) % 7
        if turn == 0:
            return answer
        done = before.pass_on(request)
        return answer if turn == 3 and catalogs.is_rest_commit(request) else done

    def has(records: int) -> bool:
        return len(reader.offsets()) + len(reader.quarantined()) == records

    with running(stream) as failures:
        feed.send(*orders(number, 0, 2), b"junk")
        wait_for(lambda: of(feed, feed.reports.batches) == 3)
        with before.treating(lambda _: True, lambda _: answer):
            feed.send(*orders(number, 2, 2))
            wait_for(lambda: troubles() >= 2)
            assert has(3)
        wait_for(lambda: of(feed, feed.reports.batches) == 5)
        with before.treating(lambda _: True, now_and_then):
            for first in range(3):
                feed.send(*orders(number, first, 1), b"junk", partition=1)
                wait_for(partial(has, 7 + 2 * first), 300)
    assert failures == []
    assert reader.offsets() == [(0, 0), (0, 1), (0, 3), (0, 4), (1, 0), (1, 2), (1, 4)]
    assert [at for at, _ in reader.quarantined()] == [1, 2, 3, 5]
    assert all(proof.holds for proof in proofs(reader))
    assert logged(reader) == list(range(1, len(logged(reader)) + 1))


@pytest.mark.aws
def test_a_stream_goes_on_where_calls_to_s3_and_glue_are_throttled(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_ingest.streaming.supervise._FIRST_SECONDS", 0.5)
    monkeypatch.setattr("spark_ingest.streaming.supervise._SERVICE_SECONDS", 0.5)
    number, turns = feed.register(ORDER), itertools.count()
    with catalogs.glue(feed.services.spark) as before:
        catalogs.make_bucket(before)

        def through(address: str) -> Feed:
            spark = catalogs.use(feed.services.spark, **catalogs.on_s3(address))
            return replace(feed, services=replace(feed.services, spark=spark))

        reader, stream = through(before.service), through(before.address)

        def has(records: int) -> bool:
            return len(reader.offsets()) + len(reader.quarantined()) == records

        with running(stream) as failures:
            feed.send(*orders(number, 0, 2), b"junk")
            wait_for(partial(has, 3))
            with before.treating(lambda _: next(turns) % 10 == 0, catalogs.throttled):
                for batch in range(1, 4):
                    feed.send(*orders(number, 2 * batch, 2), b"junk")
                    wait_for(partial(has, 3 + 3 * batch), 300)
            calls = next(turns)
            with before.treating(lambda _: bool(next(turns)), catalogs.throttled):
                feed.send(*orders(number, 8, 2))
                # What the SDK repeats by itself is over, and it was asked for again.
                wait_for(lambda: next(turns) > calls + 30, 300)
                assert has(12)
            wait_for(partial(has, 14), 300)
        assert failures == []
        assert reader.offsets() == [(0, at) for at in range(14) if at % 3 != 2 or at > 11]
        assert [at for at, _ in reader.quarantined()] == [2, 5, 8, 11]
        assert all(proof.holds for proof in proofs(reader))
        assert logged(reader) == list(range(1, len(logged(reader)) + 1))
