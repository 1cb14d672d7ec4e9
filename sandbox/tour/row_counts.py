"""Records on the broker compared with the rows of the tables, by stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from sandbox.streams import declared_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "bronze"

Ends = Mapping[str, Mapping[int, int]]
"""End offset (exclusive) by stream name and partition."""


@dataclass(frozen=True)
class RowCounts:
    """Records of one stream, counted by their Kafka offsets.

    Attributes:
        produced: Records on the broker.
        bronze: Rows in the stream's bronze table.
        quarantine: Rows in quarantine.
        missing: Offsets that are in neither.
        doubled: Rows beyond one per offset.
    """

    produced: int
    bronze: int
    quarantine: int
    missing: int
    doubled: int

    @property
    def is_complete(self) -> bool:
        """Whether each record is there exactly once."""
        return not (self.missing or self.doubled)


def row_counts(spark: SparkSession, ends: Ends, schema: str = SCHEMA) -> dict[str, RowCounts]:
    """Compare the offsets of the broker with those in the tables.

    Records after ``ends`` are not counted; ``schema`` has the bronze tables and quarantine.
    Returns the counts of each stream of ``ends``, in that order.
    """
    places = " union all ".join(
        _positions(name, of, table, place)
        for name, of in ends.items()
        for place, table in (
            ("bronze", f"{schema}.{name.replace('.', '__')}"),
            ("quarantine", f"{schema}.quarantine"),
        )
    )
    found = {
        row[0]: [int(number) for number in row[1:]]
        for row in spark.sql(
            "select stream, count_if(place = 'bronze'), count_if(place = 'quarantine'),"
            f" count(distinct topic_id, partition, position) from ({places})"
            " group by stream"
        ).collect()
    }
    counted = {}
    for name, of in ends.items():
        bronze, quarantine, distinct = found.get(name, [0, 0, 0])
        produced = sum(of.values())
        counted[name] = RowCounts(
            produced=produced,
            bronze=bronze,
            quarantine=quarantine,
            missing=produced - distinct,
            doubled=bronze + quarantine - distinct,
        )
    return counted


def total(counted: Mapping[str, RowCounts]) -> RowCounts:
    """The sum over all streams."""
    return RowCounts(
        **{
            field.name: sum(getattr(one, field.name) for one in counted.values())
            for field in fields(RowCounts)
        }
    )


def _positions(stream: str, ends: Mapping[int, int], table: str, place: str) -> str:
    before_their_ends = " or ".join(
        f"(_kafka_partition = {partition} and _kafka_offset < {end})"
        for partition, end in ends.items()
    )
    return (
        f"select '{stream}' as stream, '{place}' as place,"
        " _kafka_topic_id as topic_id, _kafka_partition as partition,"
        f" _kafka_offset as position from {table}"
        f" where _kafka_topic = '{declared_topics()[stream]}'"
        f" and ({before_their_ends})"
    )
