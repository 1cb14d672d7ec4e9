"""What Debezium's connectors say of a change, in the forms in which they write it."""

from __future__ import annotations

from tests.python.world.kafka import Row


def lsn(place: int) -> Row:
    """A place in the log of PostgreSQL."""
    return {"__lsn": place}


def binlog(place: int, file: str = "binlog.000001") -> Row:
    """A place in the log of MariaDB."""
    return {"__source_file": file, "__source_pos": place, "__source_row": 0}


def flattened(
    table: str, op: str, place: Row, millis: int, schema_id: int = 1, **row: object
) -> Row:
    """A row with what the connector says beside it.

    Args:
        table: Its name.
        op: The letter of what happened.
        place: In the log.
        millis: When it was committed.
        schema_id: Of the record.
        row: Its columns; none for a truncate.
    """
    return {
        **row,
        **place,
        "__op": op,
        "__table": table,
        "__source_ts_ms": millis,
        "__deleted": "true" if op == "d" else "false",
        "_schema_id": schema_id,
    }


def envelope(op: str, before: Row | None, after: Row | None, place: int, millis: int) -> Row:
    """Both states of a row, and where the change stands in the log of PostgreSQL."""
    snapshot = "true" if op == "r" else None
    source = {"ts_ms": millis, "snapshot": snapshot, "lsn": place}
    return {"before": before, "after": after, "source": source, "op": op}
