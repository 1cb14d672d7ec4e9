"""The simulation of commits to one table, and the size of metadata by its commits.

Fails when the simulation loses conflicts, or its writers commit more often than the table allows.
"""

from __future__ import annotations

import pytest

from bench.many_tables import Growth, bytes_of, simulated


def test_one_writer_has_no_conflicts() -> None:
    alone = simulated(1, period=0.5, commit_seconds=0.1, seconds=1000)
    assert alone.attempts == 1
    assert alone.rate == pytest.approx(2, rel=0.05)
    assert alone.seconds == pytest.approx(0.1)


def test_the_more_writers_the_more_conflicts_but_never_two_commits_at_once() -> None:
    found = [simulated(n, period=0.5, commit_seconds=0.1, seconds=1000) for n in (2, 4, 8, 32)]
    attempts = [each.attempts for each in found]
    assert attempts == sorted(attempts)
    assert 1 < attempts[0] < 2 < attempts[-1]
    assert all(each.rate <= 1 / 0.1 for each in found)


def test_writers_that_share_a_core_wait_for_each_other() -> None:
    shared, free = (
        simulated(4, period=0.5, commit_seconds=0.1, seconds=1000, cores=cores)
        for cores in (1, None)
    )
    assert shared.seconds > free.seconds


def test_the_size_of_metadata_is_that_of_its_snapshots() -> None:
    growth = [Growth(n, 3000 + 700 * n, 0) for n in (100, 200, 300, 400)]
    # What comes later does not count.
    growth[3] = Growth(400, 0, 0)
    assert bytes_of(growth) == (3000, 700)
