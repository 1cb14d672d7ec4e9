"""The size of a batch, limited by a number of records and by their bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_ingest.lake.jvm import JAVA_ERRORS
from spark_ingest.records import out_of_range

# 2.5 million records of 400 bytes.
MOST_BYTES = 2**30
# Records in a sample, or in the first batch if the record size is unknown: a gigabyte if each
# has Kafka's default maximum size.
PROBE = 1000
_MOST_GROWTH = 10.0


class BatchSize:
    """Estimates how many records fit into a batch from the size of earlier records."""

    def __init__(self, most_bytes: int) -> None:
        """Start without an estimate.

        ``most_bytes`` is the maximum size of keys, values and headers in a batch.
        """
        self._most_bytes = most_bytes
        self._record_bytes: float | None = None

    def fitting(self, waiting: int, known: Callable[[], float | None]) -> int:
        """The maximum number of records of the next batch, at least 1.

        ``waiting`` is the number of unread records. ``known`` samples them and returns the bytes
        of a record, or None; it is called if no batch has been measured yet and more than
        ``PROBE`` records are unread.
        """
        if self._record_bytes is None and waiting > PROBE:
            self._record_bytes = known()
        if self._record_bytes is None:
            return min(waiting, PROBE)
        most = int(self._most_bytes / max(self._record_bytes, 1.0))
        return max(min(waiting, most), 1)

    def learn(self, records: int, size: int) -> None:
        """Update the estimate from a batch of ``records`` records and ``size`` bytes.

        A batch in which records start to grow also has small ones, so the growth is
        extrapolated. The estimate shrinks by half per batch at most.
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
    """The end offsets of the first ``count`` offsets, split proportionally across partitions.

    By partition, ``starts`` has the start offset, inclusive, 0 if missing, and ``ends`` the end
    offset, exclusive. With ``count`` offsets or fewer, returns ``ends``.
    """
    sizes = {p: end - starts.get(p, 0) for p, end in ends.items()}
    total = sum(sizes.values())
    if total <= count:
        return dict(ends)
    taken = {p: size * count // total for p, size in sizes.items()}
    left = count - sum(taken.values())
    # Assign the rounding remainder to the partitions with the largest backlog.
    for p in sorted(sizes, key=lambda p: taken[p] - sizes[p])[:left]:
        taken[p] += 1
    return {p: starts.get(p, 0) + taken[p] for p in ends}


def record_bytes(records: DataFrame) -> float | None:
    """The mean size in bytes of key, value and headers in rows of Spark's Kafka source.

    None if there are no records, or Spark cannot read one: then the first batch is measured.
    """
    size = _length("value") + key_and_header_bytes("")
    try:
        row = records.agg(F.avg(size)).first()
    except JAVA_ERRORS as error:
        if not out_of_range.may_be_cause_of(error):
            raise
        return None
    return None if row is None else row[0]


def key_and_header_bytes(prefix: str) -> Column:
    """The approximate size in bytes of a record's key and headers.

    Headers are measured as text, because Spark generates code for a cast but not for an
    aggregate, which would copy every record of a batch. ``prefix`` is the prefix of Kafka's
    column names.
    """
    headers = F.octet_length(F.col(f"{prefix}headers").cast("string"))
    return _length(f"{prefix}key") + F.coalesce(headers, F.lit(0))


def _length(column: str) -> Column:
    return F.coalesce(F.length(column), F.lit(0))
