"""A captured table's changes and its history in DuckDB, built by the project's own macros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import duckdb

from tests.python.unit.dbt.test_change_histories import STREAM, Table, context
from tests.python.unit.dbt.test_increment_macros import increment

KEY = ["key_one"]
ATTRIBUTES = ["name", "note", "rank"]
_OF_CHANGE = (
    "change_kind varchar, is_deleted boolean, is_tombstone boolean, is_snapshot boolean,"
    " source_committed_at timestamp, source_position varchar"
)
_OF_KAFKA = (
    "_kafka_topic_id varchar, _kafka_partition integer, _kafka_offset bigint,"
    " _kafka_timestamp timestamp, _ingested_at timestamp, _commit_id bigint"
)
_COLUMNS_OF_KEY = "key_one integer, name varchar, note varchar, rank integer"


@dataclass(frozen=True)
class Options:
    """What ``config.meta.ingest.captured`` and the model say of a table.

    Attributes:
        track: The attributes whose change makes a version; none: all.
        ignore_null_updates: Those that an update with null leaves as they were.
        left_out: Those that an update may leave out of the log.
        truncates: Whether a record may empty the table.
    """

    track: tuple[str, ...] | None = None
    ignore_null_updates: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    truncates: bool = False


@dataclass(frozen=True)
class Change:
    """A record of a change, as staging gives it.

    Attributes:
        key: The row; none for a truncate.
        kind: snapshot, create, update, delete, tombstone, truncate.
        values: Of ``ATTRIBUTES``, in order.
        position: In the log; none for a tombstone.
        committed_at: When, by the database's clock; of a tombstone by Kafka's.
        partition: Where it lies in Kafka.
        offset: And at which place.
        commit_id: With which commit ingest wrote it.
    """

    key: int | None
    kind: str
    values: tuple[Any, ...]
    position: int | None
    committed_at: datetime
    partition: int
    offset: int
    commit_id: int = 0

    @property
    def is_deleted(self) -> bool:
        return self.kind in ("delete", "tombstone")


@dataclass
class Lake:
    """One captured table, and a history of it that grows."""

    options: Options
    db: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    read_to: int = 0
    newest: int = 0

    def __post_init__(self) -> None:
        self.db.execute(
            f"create table changes ({_COLUMNS_OF_KEY}, {_OF_CHANGE}, {_OF_KAFKA})"
        )
        self.db.execute(
            "create table truncates (source_position varchar, source_committed_at timestamp,"
            f" {_OF_KAFKA})"
        )
        self.db.execute(
            "create macro octet_length(text) as strlen(text);"
            "create macro sha2(text, bits) as sha256(text)"
        )
        self._increment: dict[str, Any] = {}
        self._macros = context(
            restarts={STREAM.split(".")[0]: []},
            options={"key": KEY},
            this=Table("history"),
            target=SimpleNamespace(name="sandbox", schema="dev"),
            model=SimpleNamespace(
                resource_type="model",
                unique_id="history",
                columns={
                    name: {
                        "data_type": "varchar(64)"
                        if name in self.options.left_out
                        else "varchar(8)"
                    }
                    for name in [*KEY, *ATTRIBUTES]
                },
                config=SimpleNamespace(materialized="incremental"),
            ),
            run_query=lambda query: SimpleNamespace(
                rows=self.db.execute(query).fetchall()
            ),
        )
        replaced = self._macros._macros
        replaced["begin_increment"] = lambda **_: self._increment
        replaced["truncates_of"] = lambda *_: (
            "select * from truncates" if self.options.truncates else None
        )

    def commit(self, changes: Sequence[Change]) -> None:
        """Append records, as a commit of ingest."""
        self.newest += 1
        for change in changes:
            kafka = (
                "T",
                change.partition,
                change.offset,
                change.committed_at,
                change.committed_at,
                self.newest,
            )
            position = None if change.position is None else f"{change.position:020d}"
            if change.kind == "truncate":
                self.db.execute(
                    f"insert into truncates values ({', '.join('?' * 8)})",
                    [position, change.committed_at, *kafka],
                )
                continue
            self.db.execute(
                f"insert into changes values ({', '.join('?' * 16)})",
                [
                    change.key,
                    *change.values,
                    change.kind,
                    change.is_deleted,
                    change.kind == "tombstone",
                    change.kind == "snapshot",
                    change.committed_at,
                    position,
                    *kafka,
                ],
            )

    def build(self) -> None:
        """Build the history, or bring it up to date; a run that died is one not recorded."""
        self.run()
        self.read_to = self.newest

    def run(self) -> None:
        """Write what is new, and record nothing."""
        everything = self.read_to == 0
        query = self._query(self.read_to, everything)
        if everything:
            self.db.execute(f"create or replace table history as {query}")
            return
        self.db.execute(f"create or replace table fresh as {query}")
        columns = [row[0] for row in self.db.execute("describe history").fetchall()]
        if self._increment["is_everything"]:
            self.db.execute("create or replace table history as from fresh")
            return
        self.db.execute(
            self._macros.replace_versions(
                "history",
                "fresh",
                columns,
                self._increment["key"],
                self._increment["late"],
            )
        )

    def versions(self) -> list[tuple[Any, ...]]:
        """All columns of the history that grew."""
        return self.db.execute("select * from history order by all").fetchall()

    def refreshed(self) -> list[tuple[Any, ...]]:
        """All columns of the history that a full refresh makes."""
        query = self._query(0, everything=True)
        return self.db.execute(f"select * from ({query}) order by all").fetchall()

    def _query(self, after: int, everything: bool) -> str:
        self._increment = increment(
            is_everything=everything,
            reads={STREAM: {"after": after, "to": self.newest}},
        )
        return str(
            self._macros.change_history(
                Table("changes"),
                STREAM,
                KEY,
                ATTRIBUTES,
                track=self.options.track,
                ignore_null_updates=list(self.options.ignore_null_updates),
            )
        )
