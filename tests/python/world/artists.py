"""A table of a database, its log, and the records that capture makes of it.

The log is the truth that histories are compared with: each change with its position, and the
state that it left. Records come of it as Debezium's do: keyed, in the partition of their key,
a delete with values that say nothing and a tombstone behind it, sent again after a restart,
read again by a snapshot while transactions are open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.python.world.debezium import flattened, lsn
from tests.python.world.kafka import Kafka, Row, said_by

PARTITIONS = 2
ARTISTS = "bronze.moma__artists"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
State = tuple[str | None, str | None]
"""Name and nationality of an artist."""


@dataclass
class Version:
    """What a row of the database held from a moment on; None: it was deleted."""

    since: datetime
    state: State | None


@dataclass
class Artists:
    """The museum's table of artists, with the records of its changes that wait in Kafka.

    Attributes:
        rows: What the table holds.
        truth: By key, what its row held since when.
        waiting: By partition, the records that ingest has not read.
    """

    random: Random
    rows: dict[int, State] = field(default_factory=dict)
    truth: dict[int, list[Version]] = field(default_factory=dict)
    waiting: dict[int, list[Row]] = field(
        default_factory=lambda: {partition: [] for partition in range(PARTITIONS)}
    )
    _kafka: Kafka = field(default_factory=lambda: Kafka("moma.public.artists"))
    _lsn: int = 1000
    _now: datetime = _BEGIN
    _open: dict[int, tuple[int, State]] = field(default_factory=dict)

    def create(self, artist_id: int, state: State) -> None:
        self._commit(artist_id, state, "c")

    def update(self, artist_id: int, state: State) -> None:
        self._commit(artist_id, state, "u")

    def delete(self, artist_id: int) -> None:
        """Its record has values that the table never held; a tombstone follows."""
        self._commit(artist_id, None, "d")
        self._send(artist_id, {"_is_tombstone": True})

    def rename(self, artist_id: int, new_id: int) -> None:
        """A changed key is a delete and a create of one position."""
        state = self.rows[artist_id]
        self.delete(artist_id)
        self._lsn -= 10
        self.create(new_id, state)

    def truncate(self) -> None:
        """It waits for open transactions, and its record has no key."""
        self.end_updates()
        self._tick()
        for artist_id in self.rows:
            self._know(artist_id, None)
        self.rows.clear()
        record = self._kafka.record(
            partition := self.random.randrange(PARTITIONS),
            self._now.isoformat(),
            **self._said_of("t", self._lsn),
        )
        self.waiting[partition].append(record)

    def restart_log(self) -> datetime:
        """Let the database's log restart, as after a restore; gives when."""
        self._now += timedelta(seconds=10)
        self._lsn = 100
        return self._now

    def begin_update(self, artist_id: int, state: State) -> None:
        """Write it into the log; `end_updates` commits it."""
        self._lsn += 10
        self._open[artist_id] = self._lsn, state

    def end_updates(self) -> None:
        for artist_id, (place, state) in self._open.items():
            self._commit(artist_id, state, "u", place)
        self._open.clear()

    def snapshot(self) -> None:
        """Every row as it stands; changes of open transactions are not in it."""
        self._tick()
        for artist_id, state in self.rows.items():
            self._know(artist_id, state)
            self._send(artist_id, self._record(artist_id, state, "r", self._lsn))

    def send_again(self, artist_id: int) -> None:
        """What a connector that was killed has sent, and not noted."""
        partition = artist_id % PARTITIONS
        mine = [
            row
            for row in self.waiting[partition]
            if row.get("_key") == {"artist_id": artist_id} and row.get("__op") != "r"
        ]
        tail = mine[-3:]
        # A delete and its tombstone have one place in the log: it begins with no tombstone.
        while tail and tail[0].get("_is_tombstone"):
            tail.pop(0)
        for row in tail:
            self._send(artist_id, said_by(row))

    def deliver(self, partition: int, count: int) -> list[Row]:
        """The oldest records that wait in a partition, which then wait no longer."""
        taken = self.waiting[partition][:count]
        del self.waiting[partition][:count]
        return taken

    @property
    def busy(self) -> set[int]:
        """Rows that an open transaction has locked."""
        return set(self._open)

    def _commit(
        self, artist_id: int, state: State | None, kind: str, place: int | None = None
    ) -> None:
        self._tick()
        if place is None:
            place = self._lsn
        if state is None:
            self.rows.pop(artist_id)
        else:
            self.rows[artist_id] = state
        self._know(artist_id, state)
        held = ("", "") if state is None else state
        self._send(artist_id, self._record(artist_id, held, kind, place))

    def _know(self, artist_id: int, state: State | None) -> None:
        versions = self.truth.setdefault(artist_id, [])
        if not versions or versions[-1].state != state:
            versions.append(Version(self._now, state))

    def _tick(self) -> None:
        """Several transactions may be committed within one millisecond."""
        self._lsn += 10
        self._now += timedelta(milliseconds=self.random.choice([0, 1, 1000]))

    def _record(self, artist_id: int, state: State, kind: str, place: int) -> Row:
        row = {"artist_id": artist_id, "name": state[0], "nationality": state[1]}
        return self._said_of(kind, place, **row)

    def _said_of(self, kind: str, place: int, **row: Any) -> Row:
        millis = round(self._now.timestamp() * 1000)
        return flattened("artists", kind, lsn(place), millis, **row)

    def _send(self, artist_id: int, record: dict[str, Any]) -> None:
        """Kafka's time is later than the commit's, and all that a tombstone has."""
        partition = artist_id % PARTITIONS
        sent_at = self._now + timedelta(seconds=self.random.choice([0, 5]))
        self.waiting[partition].append(
            self._kafka.record(
                partition, sent_at.isoformat(), **{"_key": {"artist_id": artist_id}, **record}
            )
        )
