"""Random logs of a database's table, and the records that capture makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from tests.python.histories.lake import Change
from tests.python.histories.options import ATTRIBUTES, LEFT_OUT, Options

PARTITIONS = 2
KINDS = ["create"] * 3 + ["update"] * 8 + ["delete"] * 2 + ["again"] * 2
KINDS += ["open", "close", "snapshot", "compacted", "truncate", "back", "unplaced"]
KINDS += ["recreated", "shift"]
FORMS = [
    ("flattened", "lsn"),
    ("flattened", "binlog"),
    ("envelope", "lsn"),
    ("envelope", "binlog"),
    ("rows", "numbers"),
    ("rows", "moment"),
]
Values = tuple[object, ...]
_BEGIN = datetime.fromisoformat("2026-01-01")
_RESTART = _BEGIN + timedelta(minutes=2)
_NOTHING: Values = (None,) * len(ATTRIBUTES)


def options_of(random: Random) -> Options:
    """Any combination."""

    def some() -> tuple[str, ...]:
        return tuple(name for name in ATTRIBUTES if random.random() < 0.4)

    form, position = random.choice(FORMS)
    texts = tuple(name for name in some() if name != "rank")
    truncates = form == "envelope" or random.random() < 0.4
    return Options(
        form=form,
        position=position,
        keys=random.choice(["number", "text", "compound"]),
        track=random.choice([None, some()]),
        ignore_null_updates=some() if random.random() < 0.5 else (),
        left_out=texts if position == "lsn" and random.random() < 0.6 else (),
        truncates=truncates,
        restarts_at=_RESTART if form != "rows" and random.random() < 0.2 else None,
        # A TRUNCATE has no partition of its own: what is read behind it, after the clock was set
        # back, looks like a restart.
        looks_for_restarts=not truncates and random.random() < 0.7,
    )


@dataclass
class Log:
    """A table, its log, and the records that wait in Kafka.

    Attributes:
        random: Decides everything.
        options: Of the table.
        keys: How many rows there may be.
        is_scattered: A row's records are in any partition.
    """

    random: Random
    options: Options
    keys: int
    is_scattered: bool = False
    rows: dict[int, Values] = field(default_factory=dict)
    waiting: dict[int, list[Change]] = field(
        default_factory=lambda: {at: [] for at in range(PARTITIONS)}
    )
    _position: int = 100
    _now: datetime = _BEGIN
    _behind: timedelta = timedelta()
    _open: dict[int, tuple[int, str, Values]] = field(default_factory=dict)
    _offsets: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))

    def __post_init__(self) -> None:
        if self.options.form == "rows":
            # Numbers may be negative, and times before 1970.
            self._position = -700

    def transaction(self) -> None:
        """Something happens to a row, or to the table."""
        chance = self.random
        before = self._now
        self._now += timedelta(milliseconds=chance.choice([0, 0, 1, 1000]))
        if self.options.restarts_at and before < _RESTART <= self._now:
            self._restart()
        # Rows that one statement wrote have the same time and number.
        self._position += chance.choice([0, 10]) if self._is_rows else 10
        row = chance.randrange(self.keys)
        kind = chance.choice(KINDS)
        if kind == "create" and row not in self.rows:
            self._write(row, "create", self._values())
        elif kind == "update" and row in self.rows and row not in self._open:
            self._write(row, "update", self._values(self.rows[row]))
        elif kind == "delete" and row in self.rows and row not in self._open:
            self._delete(row)
        elif kind == "again":
            self._send_again(chance.randrange(PARTITIONS))
        elif kind in ("open", "recreated") and row in self.rows and row not in self._open:
            if self.options.position == "binlog":
                # Its positions are those of commits.
                return
            known = self.rows[row] if kind == "open" else None
            self._open[row] = self._position, kind, self._values(known)
        elif kind == "close":
            self._close()
        elif kind == "shift" and self.options.position == "lsn":
            self._shift(row)
        elif kind == "snapshot":
            self._snapshot()
        elif kind == "compacted" and row not in self.rows:
            self._send(row, "tombstone", _NOTHING, None)
        else:
            self._do_rarely(kind, row)

    def _do_rarely(self, kind: str, row: int) -> None:
        if kind == "back" and not self.options.restarts_at:
            # The database's clock runs backwards.
            self._behind += timedelta(minutes=self.random.choice([1, 60]))
        elif kind == "unplaced":
            self._send_unplaced(row)
        elif kind == "truncate" and self.options.truncates:
            self._close()
            self.rows.clear()
            self._position += 10
            self._send(None, "truncate", _NOTHING, self._position)

    @property
    def _is_rows(self) -> bool:
        return self.options.form == "rows"

    def deliver(self, partition: int, count: int) -> list[Change]:
        """The oldest records that wait in a partition, which then wait no longer."""
        taken = self.waiting[partition][:count]
        del self.waiting[partition][:count]
        return taken

    def _restart(self) -> None:
        """The database is restored: its log begins at the beginning, and is captured again."""
        self._open.clear()
        self._now += timedelta(seconds=1)
        self._position = 10
        self._snapshot()

    def _snapshot(self) -> None:
        for at, values in self.rows.items():
            self._send(at, "snapshot", values, self._position)

    def _send_unplaced(self, row: int) -> None:
        values = ("a", "a", 1)
        self._send(row, "update", values, None)
        self._send(row, "update", values, self._position, is_without_key=True)
        if self.options.truncates and self.random.random() < 0.1:
            self._send(None, "truncate", _NOTHING, None)

    def _write(self, row: int, kind: str, values: Values, position: int = 0) -> None:
        self.rows[row] = tuple(
            old if new == LEFT_OUT else new
            for new, old in zip(values, self.rows.get(row, values), strict=True)
        )
        self._send(row, kind, values, position or self._position)

    def _delete(self, row: int, position: int = 0, is_compacted: bool = False) -> None:
        self.rows.pop(row, None)
        made_up = self.random.choice([("", "", 0), ("z", "z", 9), _NOTHING])
        if not is_compacted:
            self._send(row, "delete", made_up, position or self._position)
        if is_compacted or self.random.random() < 0.7:
            self._send(row, "tombstone", _NOTHING, None)

    def _shift(self, row: int) -> None:
        """``set id = id + 1`` of neighbours, with a deferrable key: once, or twice."""
        for _ in range(self.random.choice([1, 1, 2])):
            end = row
            while end in self.rows and end not in self._open:
                end += 1
            if end in self._open or end >= self.keys:
                return
            before = dict(self.rows)
            for at in range(row, end):
                self._position += 10
                self._delete(at)
                self._write(at + 1, "create", before[at])
            for at in range(row, end):
                self.rows[at + 1] = before[at]
            self.rows.pop(row, None)
            row += 1

    def _close(self) -> None:
        for row, (position, kind, values) in self._open.items():
            self._now += timedelta(milliseconds=self.random.choice([0, 1]))
            if kind == "open":
                self._write(row, "update", values, position)
            else:
                self._delete(row, position, is_compacted=self.random.random() < 0.3)
                self._write(row, "create", values, position + 2)
        self._open.clear()

    def _values(self, known: Values | None = None) -> Values:
        chance = self.random
        found: list[object] = []
        for at, name in enumerate(ATTRIBUTES):
            texts: list[object] = [1, 2, 3, None] if name == "rank" else ["a", "b", None]
            value = chance.choice(texts)
            if known is not None and chance.random() < 0.5:
                value = known[at]
            if known is not None and name in self.options.left_out:
                value = chance.choice([value, LEFT_OUT])
            found.append(value)
        return tuple(found)

    def _send_again(self, partition: int) -> None:
        """What a connector that was killed has sent, and not noted."""
        tail = self.waiting[partition][-self.random.choice([1, 3, 6]) :]
        while tail and tail[0].kind == "tombstone":
            tail.pop(0)
        restart = self.options.restarts_at
        for change in tail:
            is_of_old_log = restart and change.sent_at < restart <= self._now
            if change.kind != "snapshot" and not is_of_old_log:
                self._append(replace(change, sent_at=self._now), partition)

    def _send(
        self,
        row: int | None,
        kind: str,
        values: Values,
        position: int | None,
        is_without_key: bool = False,
    ) -> None:
        partition = (
            self.random.randrange(PARTITIONS)
            if self.is_scattered or row is None
            else row % PARTITIONS
        )
        change = Change(
            row,
            kind,
            values,
            position,
            committed_at=self._now - self._behind,
            sent_at=self._now,
            is_without_key=is_without_key,
        )
        self._append(change, partition)

    def _append(self, change: Change, partition: int) -> None:
        offset = self._offsets[partition]
        self._offsets[partition] += 1
        self.waiting[partition].append(replace(change, partition=partition, offset=offset))
