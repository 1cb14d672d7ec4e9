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
WRONG = "wrong"

LATEST_MILLIS = 30 * 60_000
"""A late record arrives at most this long after its event."""
LEAST_DELAY_MILLIS = 50
"""No record arrives sooner than this after its event."""
_LEAST_LATE_MILLIS = 60_000
_DELAY_MILLIS = 1_950
_BLOCK = 1_000

Draw = Callable[[Callable[[], float], int, int], tuple[bytes, bytes]]
"""Makes one event, (random, number, event time in ms) -> (framed key, framed value)."""


class Record(NamedTuple):
    """One record to send.

    Attributes:
        key: Framed key; None for a record without one.
        value: Framed value, or a broken one.
        timestamp: Kafka timestamp: when it arrives, milliseconds since 1970 UTC.
        kind: ``on_time``, ``late``, ``wrong`` or a name of ``FAULTS``.
        beside: The topic, when the record is no event of the run but describes something
            beside them; it counts for no share and no rate.
    """

    key: bytes | None
    value: bytes
    timestamp: int
    kind: str
    beside: str = ""


@dataclass(frozen=True)
class Plan:
    """What a run shall make.

    Attributes:
        seed: Start of all chance.
        count: Events in all, broken ones included; None is without end.
        start: First event time, milliseconds since 1970 UTC.
        step: Milliseconds from one event to the next, on average.
        late: Share of the events that arrive late, 0 to 1.
        bad: Share of the events that are broken, 0 to 1.
        first_number: Number of the first event; the next has the next. Broken events
            use no number.
        wrong: Share of the events that can be read, but contradict themselves, 0 to 1;
            ``late + bad + wrong`` is at most 1.
    """

    seed: int
    count: int | None
    start: int
    step: float
    late: float = 0.0
    bad: float = 0.0
    first_number: int = 1
    wrong: float = 0.0


def timeline(plan: Plan, draw: Draw) -> Iterator[Record]:
    """The records of a plan in the order in which they are sent.

    Of N events exactly ``round(N * late)`` are late and ``round(N * bad)`` broken. A late
    record is sent when its time of arrival comes (after the last event when that is beyond
    the end). The plan has no wrong ones, and the same plan gives the same bytes.
    """
    return by_arrival(_events(plan, draw))


def _events(plan: Plan, draw: Draw) -> Iterator[Record]:
    random = Random(plan.seed).random
    number = plan.first_number
    for place, kind in enumerate(kinds(plan, random)):
        event = plan.start + int((place + random()) * plan.step)
        arrival = prompt_arrival(random, event)
        spoil = FAULTS.get(kind)
        if spoil is not None:
            key, value = draw(random, 0, event)
            yield Record(key, spoil(random, value), arrival, kind)
            continue
        key, value = draw(random, number, event)
        number += 1
        if kind == LATE:
            arrival = late_arrival(random, event)
        yield Record(key, value, arrival, kind)


def kinds(plan: Plan, random: Callable[[], float]) -> Iterator[str]:
    """What each event of a plan is, in their order: late, wrong, a fault's name, on time.

    Of N events exactly ``round(N * share)`` are of each sort, the faults taking turns, so
    that their counts differ by one at most; where the rounded shares make more than the
    whole, late and then wrong ones give way. Chance is drawn now and then, in between.
    """
    faults = list(FAULTS)
    made = broken = delayed = contrary = 0
    while plan.count is None or made < plan.count:
        size = _BLOCK if plan.count is None else min(_BLOCK, plan.count - made)
        bad = round((made + size) * plan.bad) - broken
        late = min(round((made + size) * plan.late) - delayed, size - bad)
        wrong = min(round((made + size) * plan.wrong) - contrary, size - bad - late)
        places = _places(random, size, bad + late + wrong)
        block = [ON_TIME] * size
        for turn, place in enumerate(sorted(places[:bad]), start=broken):
            block[place] = faults[turn % len(faults)]
        for place in places[bad : bad + late]:
            block[place] = LATE
        for place in places[bad + late :]:
            block[place] = WRONG
        yield from block
        made, broken = made + size, broken + bad
        delayed, contrary = delayed + late, contrary + wrong


def prompt_arrival(random: Callable[[], float], event: int) -> int:
    """When what is not late arrives: 0.05 to 2 s after its event (both in ms)."""
    return event + LEAST_DELAY_MILLIS + int(random() * _DELAY_MILLIS)


def late_arrival(random: Callable[[], float], event: int) -> int:
    """When what is late arrives: 1 to 30 minutes after its event (both in ms)."""
    span = LATEST_MILLIS - _LEAST_LATE_MILLIS + 1
    return event + _LEAST_LATE_MILLIS + int(random() * span)


def by_arrival(records: Iterator[Record]) -> Iterator[Record]:
    """Records in the order of their events, but late ones at the place where they arrive."""
    waiting: list[tuple[int, int, Record]] = []
    for number, record in enumerate(records):
        if record.kind == LATE:
            heapq.heappush(waiting, (record.timestamp, number, record))
            continue
        while waiting and waiting[0][0] <= record.timestamp:
            yield heapq.heappop(waiting)[2]
        yield record
    while waiting:
        yield heapq.heappop(waiting)[2]


def _places(random: Callable[[], float], size: int, count: int) -> list[int]:
    """``count`` different numbers below ``size``, in random order."""
    if not count:
        return []
    pool = list(range(size))
    for at in range(count):
        other = at + int(random() * (size - at))
        pool[at], pool[other] = pool[other], pool[at]
    return pool[:count]
