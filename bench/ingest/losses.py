"""What a system lost: the records sent compared with what it wrote."""

from __future__ import annotations

from dataclasses import dataclass

from bench.ingest.load import Sent

KEPT = "nothing"
METADATA = ("key", "headers", "position", "time in Kafka", "schema id")


@dataclass(frozen=True)
class Landed:
    """What a system has written after its run.

    Attributes:
        rows: Rows in its table or files.
        empty: Rows in which every field of the value is null, without marked tombstones.
        set_aside: Records that it keeps elsewhere (quarantine), with their raw bytes.
        fields: Fields of the value that it has columns for.
        metadata: Those of ``METADATA`` that it has columns for.
        marks_tombstones: Whether it marks tombstones as such.
        is_table: Whether it writes a table with atomic commits, not just a folder of files.
        numbers: Timestamp fields that it stores as numbers.
    """

    rows: int
    empty: int
    set_aside: int
    fields: frozenset[str]
    metadata: frozenset[str]
    marks_tombstones: bool = False
    is_table: bool = True
    numbers: frozenset[str] = frozenset()


def losses(landed: Landed, sent: Sent, fields: list[str]) -> str:
    """A short description of what was lost; ``nothing`` if nothing was.

    Args:
        landed: What was written.
        sent: The records sent.
        fields: The newer schema's fields.
    """
    lost = []
    absent = sent.records - landed.rows - landed.set_aside
    if absent > 0:
        lost.append(f"{absent:,} records")
    if absent < 0:
        lost.append(f"{-absent:,} records are there twice")
    if landed.empty:
        lost.append(f"{landed.empty:,} records became rows of nulls")
    # A tombstone is a marked row, a row of nulls, or no row: never a complete row.
    tombstones = sent.kinds["tombstone"]
    whole = landed.rows - landed.empty - tombstones * landed.marks_tombstones
    wrong = whole - (sent.landing - tombstones)
    if absent >= 0 and wrong > 0:
        lost.append(f"{wrong:,} bad records pass as good")
    dropped = [name for name in fields if name not in landed.fields]
    if dropped:
        lost.append(f"field {', '.join(dropped)}")
    if landed.numbers:
        lost.append(f"{', '.join(sorted(landed.numbers))} no time any more")
    without = [name for name in METADATA if name not in landed.metadata]
    if without:
        lost.append(", ".join(without))
    if not landed.is_table:
        lost.append("no table")
    return "; ".join(lost) or KEPT
