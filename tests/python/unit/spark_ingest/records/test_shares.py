"""Offsets that tasks share: fails when one is read by none of them, or by two."""

from __future__ import annotations

import random

from spark_ingest.records.frames import shares


def test_shares_are_of_one_size_and_hold_each_offset_once() -> None:
    chance = random.Random(7)
    for _ in range(200):
        starts = {p: chance.randrange(100) for p in range(chance.randrange(1, 9))}
        ends = {p: start + chance.randrange(50) for p, start in starts.items()}
        tasks, total = chance.randrange(1, 9), sum(ends.values()) - sum(starts.values())
        found = shares(starts, ends, tasks)
        read = [
            (partition, offset)
            for share in found
            for partition, first, end in share
            for offset in range(first, end)
        ]
        wanted = [(p, offset) for p in ends for offset in range(starts[p], ends[p])]
        assert sorted(read) == wanted
        sizes = [sum(end - first for _, first, end in share) for share in found]
        assert len(sizes) <= tasks
        assert all(size == -(-total // tasks) for size in sizes[:-1])


def test_a_partition_whose_first_offset_is_not_known_is_read_from_its_earliest() -> None:
    assert shares({1: 5}, {0: 100, 1: 10}, 3) == [[[0, -1, 100]], [[1, 5, 10]]]


def test_nothing_is_no_share() -> None:
    assert shares({0: 3}, {0: 3}, 2) == []
