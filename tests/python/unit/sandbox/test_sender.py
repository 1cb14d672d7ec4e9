"""What was handed over to Kafka is counted, whenever Ctrl-C comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

from sandbox.events.sender import Outlet
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


def test_who_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        outlet = object.__new__(Outlet)
        producer = Interrupted()
        vars(outlet).update(_producer=producer, stream=SimpleNamespace(topic="events"))

        tally = outlet.send(islice(records(), 5))
    finally:
        signal.signal(signal.SIGINT, before)

    assert not tally.interrupted
    assert tally.delivered == producer.taken == 5


def test_a_record_that_is_sent_is_counted_when_ctrl_c_comes() -> None:
    for rate in (None, 1000.0):
        outlet = object.__new__(Outlet)
        producer = Interrupted()
        vars(outlet).update(_producer=producer, stream=SimpleNamespace(topic="events"))

        tally = outlet.send(records(), rate)

        assert tally.interrupted
        assert tally.delivered == producer.taken
