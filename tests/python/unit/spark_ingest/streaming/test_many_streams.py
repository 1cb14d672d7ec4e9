"""Hundreds of streams are begun side by side.

Fails when each waits for the one before it, which takes minutes on an object store.
"""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import Mock

import pytest

from spark_ingest.errors import ConfigurationError
from spark_ingest.sources import IngestMeta, Stream
from spark_ingest.streaming import supervise, tables
from spark_ingest.streaming.supervise import SupervisedStream
from tests.python.unit.spark_ingest.streaming.test_supervise import Reported, Scripted

META = IngestMeta(topic="t")
STREAMS = [Stream(f"shop.t{n}", f"bronze.t{n}", "", {}, frozenset(), META) for n in range(24)]
SECONDS = 20


def test_streams_start_side_by_side() -> None:
    together = threading.Barrier(12)

    def make() -> Scripted:
        together.wait(SECONDS)
        return Scripted()

    streams = [SupervisedStream(one.name, make, lambda: None, True, Reported()) for one in STREAMS]
    supervise.supervise(streams, threading.Event(), Reported())
    assert [one.failure for one in streams] == [None] * len(STREAMS)


def test_tables_are_created_side_by_side_and_no_more_after_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []
    together = threading.Event()

    def create(_services: Any, stream: Stream) -> bool:
        begun.append(stream.name)
        if len(begun) == 6:
            together.set()
        assert together.wait(SECONDS)
        if stream is STREAMS[0]:
            raise ConfigurationError("no schema")
        return True

    named = Mock()
    monkeypatch.setattr(tables, "create_table", create)
    monkeypatch.setattr(tables, "create_shared", lambda _services: [])
    monkeypatch.setattr("spark_ingest.commits.commit_log.name_tables", named)
    with pytest.raises(ConfigurationError):
        tables.create_tables(Mock(), [STREAMS[0], *STREAMS * 100])
    assert len(begun) < len(STREAMS) * 100
    assert named.call_count == 1
