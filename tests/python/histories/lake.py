"""A captured table in DuckDB, from its records in bronze to a history that grows.

Everything between the two is the project's own macros, for Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import duckdb

from tests.python.histories.options import EPOCH, Options
from tests.python.histories.sql import HistorySql
from tests.python.unit.dbt.test_change_histories import engine

_OF_KAFKA = {
    "_is_tombstone": "boolean",
    "_kafka_topic_id": "string",
    "_kafka_partition": "integer",
    "_kafka_offset": "bigint",
    "_kafka_timestamp": "timestamp",
    "_ingested_at": "timestamp",
    "_commit_id": "bigint",
}
_OF_POSITION = {
    "lsn": {"lsn": "bigint"},
    "binlog": {"file": "string", "pos": "bigint", "row": "int"},
    "numbers": {"first_number": "int", "second_number": "bigint"},
    "moment": {"moved_at": "timestamp", "second_number": "int"},
}
_LETTERS = {"snapshot": "r", "create": "c", "update": "u", "delete": "d", "truncate": "t"}


@dataclass(frozen=True)
class Change:
    """A change of a row, and where its record lies.

    Attributes:
        row: The row's number; none for a truncate.
        kind: snapshot, create, update, delete, tombstone, truncate.
        values: Of ``ATTRIBUTES``, in order.
        position: In the log; none for a tombstone.
        committed_at: When, by the database's clock.
        sent_at: When, by Kafka's, which never steps back.
        partition: Where it lies in Kafka.
        offset: And at which place.
        commit_id: With which commit ingest wrote it.
        is_without_key: It says nothing of which row it is.
    """

    row: int | None
    kind: str
    values: tuple[Any, ...]
    position: int | None
    committed_at: datetime
    sent_at: datetime
    partition: int = 0
    offset: int = 0
    commit_id: int = 0
    is_without_key: bool = False

    @property
    def is_deleted(self) -> bool:
        return self.kind in ("delete", "tombstone")


@dataclass
class Lake:
    """One captured table, and a history of it that grows."""

    options: Options
    db: duckdb.DuckDBPyConnection = field(default_factory=engine)
    read_to: int = 0
    newest: int = 0
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.db.execute(
            "set threads = 1;"
            "create macro timestamp_millis(millis) as make_timestamp(millis * 1000);"
            "create macro unix_micros(moment) as epoch_us(moment)"
        )
        self._columns = bronze_columns(self.options)
        listed = ", ".join(f'"{name}" {_in_duckdb(kind)}' for name, kind in self._columns.items())
        self.db.execute(f"create table bronze ({listed})")
        self._sql = HistorySql(
            self.options,
            self._columns,
            lambda query: self.db.execute(query).fetchall(),
            warnings=self.warnings,
        )
        self.db.execute(f"create view changes as {self._sql.changes()}")

    def commit(self, changes: Sequence[Change]) -> None:
        """Append records, as a commit of ingest."""
        self.newest += 1
        records = bronze_records(changes, self.options, self.newest)
        if records:
            row = f"({', '.join('?' * len(self._columns))})"
            self.db.execute(
                f"insert into bronze values {', '.join([row] * len(records))}",
                [record.get(name) for record in records for name in self._columns],
            )

    def build(self) -> None:
        """Build the history, or bring it up to date; a run that died is one not recorded."""
        self.run()
        self._sql.record()
        self.read_to = self.newest

    def run(self) -> None:
        """Write what is new, and record nothing."""
        everything = self.read_to == 0
        query = self._sql.versions(self.read_to, self.newest, everything)
        if everything:
            self.db.execute(f"create or replace table history as {query}")
            return
        self.db.execute(f"create or replace table fresh as {query}")
        if self._sql.is_full_refresh:
            self.db.execute("create or replace table history as from fresh")
            return
        columns = [row[0] for row in self.db.execute("describe history").fetchall()]
        self.db.execute(self._sql.replacement("fresh", columns))

    def versions(self) -> list[tuple[Any, ...]]:
        """All columns of the history that grew."""
        return self.db.execute("select * from history order by all").fetchall()

    def refreshed(self) -> list[tuple[Any, ...]]:
        """All columns of the history that a full refresh makes."""
        query = self._sql.versions(0, self.newest, is_full_refresh=True)
        return self.db.execute(f"select * from ({query}) order by all").fetchall()


def bronze_columns(options: Options) -> dict[str, str]:
    """The columns of bronze with their types, as the source describes them."""
    row = dict(options.row_types)
    place = _OF_POSITION[options.position]
    key = {"_key": _struct(options.key_types)}
    if options.form == "envelope":
        own = {
            "before": _struct(row),
            "after": _struct(row),
            "source": _struct({**place, "ts_ms": "bigint"}),
            "op": "string",
        }
    elif options.form == "flattened":
        own = row | {"__op": "string", "__deleted": "string"}
        own |= {_flat(name): kind for name, kind in place.items()}
        own["__source_ts_ms"] = "bigint"
    else:
        own = row | place | {"is_gone": "boolean", "__op": "string"}
    return own | key | _OF_KAFKA


def bronze_records(
    changes: Sequence[Change], options: Options, commit_id: int
) -> list[dict[str, Any]]:
    """Records as a commit of ingest has them, by column; what is missing is null."""
    return [
        _record(change, options)
        | {
            "_is_tombstone": change.kind == "tombstone",
            "_kafka_topic_id": "T",
            "_kafka_partition": change.partition,
            "_kafka_offset": change.offset,
            "_kafka_timestamp": change.sent_at,
            "_ingested_at": change.sent_at,
            "_commit_id": commit_id,
        }
        for change in changes
    ]


def _flat(name: str) -> str:
    return f"__{name}" if name == "lsn" else f"__source_{name}"


def _record(change: Change, options: Options) -> dict[str, Any]:
    """A record in the form of its table: a tombstone has its key alone."""
    key: tuple[Any, ...] = (None,) * len(options.key_types)
    if change.row is not None:
        key = options.key(change.row)
        if change.is_without_key:
            key = (*key[:-1], None)
    record: dict[str, Any] = {"_key": dict(zip(options.key_types, key, strict=True))}
    if change.kind == "tombstone":
        return record
    row = dict(zip(options.row_types, (*key, *change.values), strict=True))
    letter = _LETTERS[change.kind]
    place = dict.fromkeys(_OF_POSITION[options.position])
    if change.position is not None:
        place |= options.position_columns(change.position)
    millis = (change.committed_at - EPOCH) // timedelta(milliseconds=1)
    if options.form == "envelope":
        has_before = change.kind == "delete"
        record |= {"op": letter, "source": {**place, "ts_ms": millis}}
        if change.kind != "truncate":
            record["before" if has_before else "after"] = row
    elif options.form == "flattened":
        record |= row | {"__op": letter, "__source_ts_ms": millis}
        record["__deleted"] = "true" if change.kind == "delete" else "false"
        record |= {_flat(name): value for name, value in place.items()}
    else:
        record |= row | place | {"__op": letter, "is_gone": change.kind == "delete"}
    return record


def _struct(fields: Mapping[str, str]) -> str:
    inside = ",".join(f"{name}:{kind}" for name, kind in fields.items())
    return f"struct<{inside}>"


def _in_duckdb(kind: str) -> str:
    if not kind.startswith("struct<"):
        return kind
    fields = (field.split(":") for field in kind[len("struct<") : -1].split(","))
    return f"struct({', '.join(f'{name} {of}' for name, of in fields)})"
