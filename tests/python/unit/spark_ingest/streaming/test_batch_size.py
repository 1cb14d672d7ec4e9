"""How much a batch takes, and how much of what is bad it carries along."""

from __future__ import annotations

from spark_ingest.streaming.batch_size import MOST_BYTES, BatchSize, first_part
from spark_ingest.streaming.staged_batch import carried_limits


def nothing() -> None:
    """No record was ever seen."""


def test_a_stream_whose_records_nobody_has_seen_takes_few() -> None:
    size = BatchSize(10**6)
    assert size.fitting(10**7, nothing) == 1000
    size.learn(1000, 100_000)
    assert size.fitting(10**7, nothing) == 10_000
    assert size.fitting(30, nothing) == 30


def test_what_is_known_is_asked_once_and_not_for_a_handful() -> None:
    asked: list[float] = []

    def known() -> float:
        asked.append(50.0)
        return 50.0

    size = BatchSize(10**6)
    assert size.fitting(1000, known) == 1000
    assert asked == []
    assert size.fitting(10**7, known) == 20_000
    assert size.fitting(10**7, known) == 20_000
    assert asked == [50.0]


def test_growth_counts_at_once_and_is_taken_to_go_on() -> None:
    size = BatchSize(10**6)
    size.learn(10_000, 1_000_000)
    assert size.fitting(10**7, nothing) == 10_000
    # A third of them was ten times as large.
    size.learn(10_000, 4_000_000)
    assert size.fitting(10**7, nothing) == 625
    size.learn(625, 625_000)
    assert size.fitting(10**7, nothing) == 1000
    # Not without end, where one batch has grown a thousandfold.
    size.learn(1000, 10**9)
    assert size.fitting(10**7, nothing) == 1
    for _ in range(20):
        size.learn(1, 100)
    assert size.fitting(10**7, nothing) == 10_000


def test_smaller_records_count_by_and_by() -> None:
    size = BatchSize(10**6)
    size.learn(1000, 10**6)
    assert size.fitting(10**7, nothing) == 1000
    size.learn(1000, 100_000)
    assert size.fitting(10**7, nothing) == 2000


def test_a_batch_takes_at_least_one_record_however_large() -> None:
    assert BatchSize(1000).fitting(5000, lambda: 10.0**7) == 1


def test_tombstones_alone_leave_the_estimate_sound() -> None:
    size = BatchSize(10**6)
    size.learn(500, 0)
    assert size.fitting(10**7, nothing) == 10**6
    size.learn(0, 0)
    assert size.fitting(10**7, nothing) == 10**6


def test_the_largest_batch_of_small_records_fits_by_default() -> None:
    assert BatchSize(MOST_BYTES).fitting(2_500_000, lambda: 149.0) == 2_500_000


def test_the_oldest_offsets_are_taken_from_each_partition_in_proportion() -> None:
    starts, ends = {0: 100, 1: 0}, {0: 700, 1: 300, 2: 100}
    assert first_part(starts, ends, 1000) == ends
    assert first_part(starts, ends, 100) == {0: 160, 1: 30, 2: 10}


def test_exactly_as_many_offsets_are_taken_as_asked_for() -> None:
    starts = dict.fromkeys(range(500), 7)
    ends = {p: 8 + p % 3 for p in range(500)}
    for count in (1, 2, 499, 501, 900):
        taken = first_part(starts, ends, count)
        assert sum(taken.values()) - 7 * 500 == count
        assert all(7 <= taken[p] <= ends[p] for p in ends)


def test_what_is_carried_is_divided_among_the_tasks() -> None:
    budget = 128 * 2**20
    assert carried_limits(budget, 1) == (16_384, 8000)
    assert carried_limits(budget, 32) == (512, 8000)
    for tasks in (1, 7, 500, 10_000, 10**6):
        most, largest = carried_limits(budget, tasks)
        assert most >= 1
        assert largest >= 0
        # Rows alone, where not even one fits.
        assert tasks * most * (largest + 192) <= max(budget, tasks * 192)
