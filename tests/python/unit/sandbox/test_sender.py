"""What was handed over to Kafka is counted, whenever Ctrl-C comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.events.sender import DeliveryReport, StreamProducer
from sandbox.streams.timeline import ON_TIME, Record


class Interrupted:
    """A producer that takes every record; with the third one Ctrl-C is pressed."""

    def __init__(self) -> None:
        self.taken = 0

    def produce(self, *_: Any, **__: Any) -> None:
        self.taken += 1
        if self.taken == 3:
            signal.raise_signal(signal.SIGINT)

    def poll(self, _: float) -> int:
        return 0

    def flush(self, _: float) -> int:
        return 0


def records() -> Iterator[Record]:
    while True:
        yield Record(b"key", b"value", -1, ON_TIME)


def stop(*_: object) -> None:
    """A handler of a program around: as PySpark's, it raises what Python's own one raises."""
    raise KeyboardInterrupt


@contextmanager
def handled_by(handler: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def sent(records: Iterator[Record], rate: float | None) -> tuple[DeliveryReport, Interrupted]:
    sender, producer = object.__new__(StreamProducer), Interrupted()
    vars(sender).update(_producer=producer, stream=SimpleNamespace(topic="events"))
    return sender.send(records, rate), producer


def test_who_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    with handled_by(signal.SIG_IGN):
        report, producer = sent(islice(records(), 5), None)

    assert not report.interrupted
    assert report.delivered == producer.taken == 5


@pytest.mark.parametrize("rate", [None, 1000.0])
@pytest.mark.parametrize("handler", [signal.default_int_handler, stop])
def test_a_record_that_is_sent_is_counted_when_ctrl_c_comes(
    handler: Any, rate: float | None
) -> None:
    with handled_by(handler):
        report, producer = sent(records(), rate)

    assert report.interrupted
    assert report.delivered == producer.taken
