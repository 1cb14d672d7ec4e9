"""Which ranges of offsets Spark cannot read, and the parts that a batch is taken in."""

from __future__ import annotations

from spark_ingest.records.out_of_range import Place, fits, parts, spans_of


def places(odd: set[int], end: int, size: int = 10) -> list[Place]:
    return [Place(offset, size, offset not in odd) for offset in range(end)]


def test_a_timestamp_of_spark_holds_microseconds_of_64_bits() -> None:
    largest = 9_223_372_036_854_775
    assert fits(largest)
    assert fits(-largest)
    assert fits(-1)
    assert not fits(largest + 1)
    assert not fits(-largest - 1)


def test_records_near_each_other_share_a_range() -> None:
    assert spans_of(places({5}, 9), 100, 10**6) == [(5, 6)]
    assert spans_of(places({5, 50}, 99), 100, 10**6) == [(5, 51)]
    assert spans_of(places({5, 1006}, 2000), 5000, 10**6) == [(5, 1007)]
    assert spans_of(places({5, 1007}, 2000), 5000, 10**6) == [(5, 6), (1007, 1008)]
    assert spans_of(places(set(), 9), 100, 10**6) == []


def test_a_range_has_bounded_records_and_bytes() -> None:
    everything = set(range(250))
    by_records = [(0, 100), (100, 200), (200, 250)]
    assert spans_of(places(everything, 250), 100, 10**6) == by_records
    assert spans_of(places(everything, 250), 10**6, 1000) == by_records
    # One that is too large by itself has a range of its own.
    assert spans_of(places({0, 1}, 2, size=2000), 100, 1000) == [(0, 1), (1, 2)]
    # What lies between two and is too much for one range is left to Spark.
    assert spans_of(places({0, 300}, 301), 100, 10**6) == [(0, 1), (300, 301)]


def test_a_range_goes_on_where_the_last_one_is_full() -> None:
    every_other = set(range(0, 300, 2))
    assert spans_of(places(every_other, 300), 100, 10**6) == [
        (0, 99), (99, 199), (199, 299),
    ]  # fmt: skip


def test_partitions_wait_for_each_other_at_what_spark_cannot_read() -> None:
    ranges = {0: (0, 10), 1: (5, 20), 2: (3, 3)}
    found = {0: [(2, 3), (9, 10)], 1: [(5, 6)]}
    assert list(parts(ranges, found)) == [
        ({0: (0, 2)}, False),
        ({0: (2, 3), 1: (5, 6)}, True),
        ({0: (3, 9), 1: (6, 20)}, False),
        ({0: (9, 10)}, True),
    ]


def test_the_newest_parts_come_first_where_they_are_asked_for() -> None:
    ranges = {0: (0, 10), 1: (5, 20)}
    found = {0: [(2, 3), (9, 10)], 1: [(5, 6)]}
    assert list(parts(ranges, found, newest_first=True)) == [
        ({1: (6, 20)}, False),
        ({0: (9, 10), 1: (5, 6)}, True),
        ({0: (3, 9)}, False),
        ({0: (2, 3)}, True),
        ({0: (0, 2)}, False),
    ]
