"""Which offsets a backfill takes next."""

from __future__ import annotations

from spark_ingest.commits.offsets import below, newest, total


def test_the_newest_offsets_come_first_from_each_partition_in_proportion() -> None:
    todo = {0: (0, 900), 1: (50, 150), 2: (7, 8)}
    piece = newest(todo, 100)
    assert piece == {0: (810, 900), 1: (140, 150), 2: (7, 8)}
    assert below(todo, piece) == {0: (0, 810), 1: (50, 140)}


def test_what_is_left_ends_with_a_piece_that_takes_all() -> None:
    todo = {0: (3, 5), 1: (0, 1)}
    assert newest(todo, 1000) == todo
    assert below(todo, todo) == {}
    assert newest({}, 10) == {}


def test_every_offset_is_taken_once() -> None:
    todo = {0: (0, 1001), 3: (10, 47)}
    seen: list[tuple[int, int]] = []
    while todo:
        piece = newest(todo, 100)
        assert 1 <= total(piece) <= 101
        seen += [(p, n) for p, (a, b) in piece.items() for n in range(a, b)]
        todo = below(todo, piece)
    assert len(seen) == len(set(seen)) == 1001 + 37
