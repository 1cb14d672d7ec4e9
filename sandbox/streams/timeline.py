"""When events happen and when they arrive: order, lateness and exact shares of both.

Generators draw events; this module gives each its instant, its delay and its place in
the stream. All chance comes from one seeded generator of which only ``random()`` is used,
the one method whose sequence Python promises not to change.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from sandbox.streams.faults import FAULTS

ON_TIME = "on_time"
LATE = "late"

LATEST_MILLIS = 30 * 60_000
"""A late record arrives at most this long after its event."""
_LEAST_LATE_MILLIS = 60_000
_LEAST_DELAY_MILLIS, _DELAY_MILLIS = 50, 1_950
_BLOCK = 1_000

Draw = Callable[[Callable[[], float], int, int], tuple[bytes, bytes]]
"""Makes one event, (random, number, event time in ms) -> (framed key, framed value)."""


class Record(NamedTuple):
    """One record to send.

    Attributes:
        key: Framed key.
        value: Framed value, or a broken one.
        timestamp: Kafka timestamp: when it arrives, milliseconds since 1970 UTC.
        kind: ``on_time``, ``late`` or a name of ``FAULTS``.
    """

    key: bytes
    value: bytes
    timestamp: int
    kind: str


@dataclass(frozen=True)
class Plan:
    """What a run shall make.

    Attributes:
        seed: Start of all chance.
        count: Records in all, broken ones included; None is without end.
        start: First event time, milliseconds since 1970 UTC.
        step: Milliseconds from one event to the next, on average.
        late: Share of the records that arrive late, 0 to 1.
        bad: Share of the records that are broken, 0 to 1; ``late + bad`` is at most 1.
        first_number: Number of the first event; the next has the next. Broken records
            use no number.
    """

    seed: int
    count: int | None
    start: int
    step: float
    late: float = 0.0
    bad: float = 0.0
    first_number: int = 1


def timeline(plan: Plan, draw: Draw) -> Iterator[Record]:
    """The records of a plan in the order in which they are sent.

    Of N records exactly ``round(N * late)`` are late and ``round(N * bad)`` broken, the
    faults taking turns, so that their counts differ by one at most. A late record is sent
    when its time of arrival comes (after the last event when that is beyond the end).

    Args:
        plan: What to make.
        draw: Makes one event.

    Yields:
        ``plan.count`` records; the same plan gives the same bytes.
    """
    random = Random(plan.seed).random
    faults = list(FAULTS.items())
    number, broken, delayed, made = plan.first_number, 0, 0, 0
    waiting: list[tuple[int, int, Record]] = []
    while plan.count is None or made < plan.count:
        size = _BLOCK if plan.count is None else min(_BLOCK, plan.count - made)
        bad = round((made + size) * plan.bad) - broken
        late = min(round((made + size) * plan.late) - delayed, size - bad)
        places = _places(random, size, bad + late)
        bad_places, late_places = set(places[:bad]), set(places[bad:])
        for place in range(size):
            event = plan.start + int((made + place + random()) * plan.step)
            arrival = event + _LEAST_DELAY_MILLIS + int(random() * _DELAY_MILLIS)
            if place in bad_places:
                kind, spoil = faults[broken % len(faults)]
                key, value = draw(random, 0, event)
                record = Record(key, spoil(random, value), arrival, kind)
                broken += 1
            else:
                key, value = draw(random, number, event)
                number += 1
                if place in late_places:
                    arrival = event + _lateness(random)
                    late_record = Record(key, value, arrival, LATE)
                    heapq.heappush(waiting, (arrival, number, late_record))
                    delayed += 1
                    continue
                record = Record(key, value, arrival, ON_TIME)
            while waiting and waiting[0][0] <= arrival:
                yield heapq.heappop(waiting)[2]
            yield record
        made += size
    while waiting:
        yield heapq.heappop(waiting)[2]


def _lateness(random: Callable[[], float]) -> int:
    return _LEAST_LATE_MILLIS + int(random() * (LATEST_MILLIS - _LEAST_LATE_MILLIS + 1))


def _places(random: Callable[[], float], size: int, count: int) -> list[int]:
    """``count`` different numbers below ``size``, in random order."""
    if not count:
        return []
    pool = list(range(size))
    for at in range(count):
        other = at + int(random() * (size - at))
        pool[at], pool[other] = pool[other], pool[at]
    return pool[:count]
