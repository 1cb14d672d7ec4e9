"""Ranges of Kafka offsets: set operations, and SQL conditions for the rows within them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

Span = tuple[int, int]
"""A range of offsets: the first, inclusive, and the end, exclusive."""
Ranges = Mapping[int, Span]
"""One range per partition."""
Spans = Mapping[int, Sequence[Span]]
"""Several ranges per partition."""


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Ranges in order; adjacent and overlapping ones are merged."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((first, end))
    return tuple(found)


def size(ranges: Sequence[Span]) -> int:
    """The number of offsets in ranges."""
    return sum(end - first for first, end in ranges)


def overlap(ranges: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The intersection of two lists of ranges, both in order and without overlaps."""
    found, at = [], 0
    for first, end in ranges:
        while at < len(others) and others[at][1] <= first:
            at += 1
        place = at
        while place < len(others) and others[place][0] < end:
            found.append((max(first, others[place][0]), min(end, others[place][1])))
            place += 1
    return found


def without(ranges: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The difference of two lists of ranges, both in order and without overlaps."""
    found, at = [], 0
    for first, end in ranges:
        while at < len(others) and others[at][1] <= first:
            at += 1
        here, place = first, at
        while place < len(others) and others[place][0] < end:
            if others[place][0] > here:
                found.append((here, others[place][0]))
            here = max(here, others[place][1])
            place += 1
        if here < end:
            found.append((here, end))
    return found


def newest(ranges: Ranges, most: int) -> dict[int, Span]:
    """About the last ``most`` offsets of ranges, split proportionally across partitions.

    At least one of each, so that all partitions of a backfill finish together.
    """
    share = min(most / max(total(ranges), 1), 1.0)
    return {
        p: (end - min(ceil((end - first) * share), end - first), end)
        for p, (first, end) in ranges.items()
        if end > first
    }


def below(ranges: Ranges, taken: Ranges) -> dict[int, Span]:
    """The rest of ranges without their newest parts ``taken``."""
    left = {p: (first, taken[p][0] if p in taken else end) for p, (first, end) in ranges.items()}
    return {p: (first, end) for p, (first, end) in left.items() if end > first}


def total(ranges: Ranges) -> int:
    """The number of offsets in the ranges of all partitions."""
    return sum(end - first for first, end in ranges.values())


def within(ranges: Ranges, of: str = "") -> str:
    """Like :func:`inside`, for one range per partition."""
    return inside({partition: (span,) for partition, span in ranges.items()}, of)


def inside(spans: Mapping[int, Iterable[Span]], of: str = "") -> str:
    """The SQL condition for rows with offsets in these ranges.

    ``of`` is the alias of the table, if the statement has several.
    """
    table = f"{of}." if of else ""
    each = [
        f"({table}_kafka_partition = {partition} "
        f"and {table}_kafka_offset >= {first} and {table}_kafka_offset < {end})"
        for partition, ranges in spans.items()
        for first, end in ranges
    ]
    return f"({' or '.join(each)})" if each else "false"


def beyond(ends: Mapping[int, int]) -> str:
    """The SQL condition for rows at or beyond these offsets.

    ``ends`` has the offset by partition; all rows of other partitions match.
    """
    each = [
        f"(_kafka_partition = {partition} and _kafka_offset >= {end})"
        for partition, end in ends.items()
    ]
    others = ", ".join(map(str, ends)) or "-1"
    return f"({' or '.join([*each, f'_kafka_partition not in ({others})'])})"
