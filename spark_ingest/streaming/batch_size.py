"""How much of what waits a batch takes: bounded by records, and by the bytes that these have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_ingest.lake.jvm import JAVA_ERRORS
from spark_ingest.records import out_of_range

# 2.5 million records of 400 bytes.
MOST_BYTES = 2**30
# Records that are looked at, or taken, where nobody has seen any: a gigabyte, where each is as
# large as Kafka lets it be by default.
PROBE = 1000
_MOST_GROWTH = 10.0


class BatchSize:
    """Says how many records fit into a batch, by the size of those before."""

    def __init__(self, most_bytes: int) -> None:
        """Begin with nothing known.

        ``most_bytes`` is of keys, values and headers in a batch.
        """
        self._most_bytes = most_bytes
        self._record_bytes: float | None = None

    def fitting(self, waiting: int, known: Callable[[], float | None]) -> int:
        """How many of the records that wait the next batch may take, at least one.

        ``known`` gives the bytes of a record, by some that wait, None where there are none; it
        is asked where no batch has been measured yet, and not for a handful.
        """
        if self._record_bytes is None and waiting > PROBE:
            self._record_bytes = known()
        if self._record_bytes is None:
            return min(waiting, PROBE)
        most = int(self._most_bytes / max(self._record_bytes, 1.0))
        return max(min(waiting, most), 1)

    def learn(self, records: int, size: int) -> None:
        """Take a batch into account.

        A batch in which records begin to grow has small ones too: the growth is taken to go on.
        Smaller ones count by and by.
        """
        if not records:
            return
        now, before = size / records, self._record_bytes
        if before is None:
            self._record_bytes = now
        elif now > before:
            self._record_bytes = now * min(now / max(before, 1.0), _MOST_GROWTH)
        else:
            self._record_bytes = max(now, before / 2)


def first_part(starts: Mapping[int, int], ends: Mapping[int, int], count: int) -> dict[int, int]:
    """Where the oldest offsets of some ranges end, taken from each in proportion.

    By partition, ``starts`` has the first offset, 0 for one that is missing, and ``ends`` the
    one behind the last; all are taken where there are fewer than ``count``.
    """
    sizes = {p: end - starts.get(p, 0) for p, end in ends.items()}
    total = sum(sizes.values())
    if total <= count:
        return dict(ends)
    taken = {p: size * count // total for p, size in sizes.items()}
    left = count - sum(taken.values())
    # What rounding left over goes to those that wait longest.
    for p in sorted(sizes, key=lambda p: taken[p] - sizes[p])[:left]:
        taken[p] += 1
    return {p: starts.get(p, 0) + taken[p] for p in ends}


def record_bytes(records: DataFrame) -> float | None:
    """Bytes of a record's key, value and headers, of Kafka's rows.

    None where there are none, or one that Spark cannot read: the first batch is measured then.
    """
    size = _length("value") + key_and_header_bytes("")
    try:
        row = records.agg(F.avg(size)).first()
    except JAVA_ERRORS as error:
        if not out_of_range.may_have_met(error):
            raise
        return None
    return None if row is None else row[0]


def key_and_header_bytes(prefix: str) -> Column:
    """About the bytes of a record's key and headers.

    Of the headers as text, since Spark generates code for a cast and none for an aggregate:
    that alone would cost every record of a batch a copy. ``prefix`` is of the names of Kafka's
    columns.
    """
    headers = F.octet_length(F.col(f"{prefix}headers").cast("string"))
    return _length(f"{prefix}key") + F.coalesce(headers, F.lit(0))


def _length(column: str) -> Column:
    return F.coalesce(F.length(column), F.lit(0))
