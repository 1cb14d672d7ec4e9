"""Random logs of a database's table, and the records that capture makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from tests.python.histories.lake import ATTRIBUTES, Change, Options
from tests.python.histories.rules import LEFT_OUT

PARTITIONS = 2
KINDS = ["create"] * 3 + ["update"] * 8 + ["delete"] * 2 + ["again"] * 2
KINDS += ["open", "close", "snapshot", "compacted", "truncate", "back"]
Values = tuple[object, ...]
_BEGIN = datetime.fromisoformat("2026-01-01")
_NOTHING: Values = (None,) * len(ATTRIBUTES)


def options_of(random: Random) -> Options:
    """Any combination."""

    def some() -> tuple[str, ...]:
        return tuple(name for name in ATTRIBUTES if random.random() < 0.4)

    texts = tuple(name for name in some() if name != "rank")
    return Options(
        track=random.choice([None, some()]),
        ignore_null_updates=some() if random.random() < 0.5 else (),
        left_out=texts if random.random() < 0.5 else (),
        truncates=random.random() < 0.4,
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
    _open: dict[int, tuple[int, Values]] = field(default_factory=dict)
    _offsets: dict[int, int] = field(
        default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0)
    )

    def transaction(self) -> None:
        """Something happens to a row, or to the table."""
        chance = self.random
        self._position += 10
        self._now += timedelta(milliseconds=chance.choice([0, 0, 1, 1000]))
        key = chance.randrange(self.keys)
        kind = chance.choice(KINDS)
        if kind == "create" and key not in self.rows:
            self._write(key, "create", self._values())
        elif kind == "update" and key in self.rows and key not in self._open:
            self._write(key, "update", self._values(self.rows[key]))
        elif kind == "delete" and key in self.rows and key not in self._open:
            self._delete(key)
        elif kind == "again":
            self._send_again(chance.randrange(PARTITIONS))
        elif kind == "open" and key in self.rows and key not in self._open:
            self._open[key] = self._position, self._values(self.rows[key])
        elif kind == "close":
            self._close()
        elif kind == "snapshot":
            for at, values in self.rows.items():
                self._send(at, "snapshot", values, self._position)
        elif kind == "compacted" and key not in self.rows:
            self._send(key, "tombstone", _NOTHING, None)
        elif kind == "back":
            # The database's clock is set back.
            self._now -= timedelta(minutes=chance.choice([1, 60]))
        elif kind == "truncate" and self.options.truncates:
            self._close()
            self.rows.clear()
            self._position += 10
            self._send(None, "truncate", _NOTHING, self._position)

    def deliver(self, partition: int, count: int) -> list[Change]:
        """The oldest records that wait in a partition, which then wait no longer."""
        taken = self.waiting[partition][:count]
        del self.waiting[partition][:count]
        return taken

    def _write(self, key: int, kind: str, values: Values, position: int = 0) -> None:
        self.rows[key] = tuple(
            old if new == LEFT_OUT else new
            for new, old in zip(values, self.rows.get(key, values), strict=True)
        )
        self._send(key, kind, values, position or self._position)

    def _delete(self, key: int) -> None:
        del self.rows[key]
        made_up = self.random.choice([("", "", 0), ("z", "z", 9), _NOTHING])
        self._send(key, "delete", made_up, self._position)
        if self.random.random() < 0.7:
            self._send(key, "tombstone", _NOTHING, None)

    def _close(self) -> None:
        for key, (position, values) in self._open.items():
            self._now += timedelta(milliseconds=1)
            self._write(key, "update", values, position)
        self._open.clear()

    def _values(self, held: Values | None = None) -> Values:
        chance = self.random
        found: list[object] = []
        for at, name in enumerate(ATTRIBUTES):
            texts: list[object] = (
                [1, 2, 3, None] if name == "rank" else ["a", "b", None]
            )
            value = chance.choice(texts)
            if held is not None and chance.random() < 0.5:
                value = held[at]
            if held is not None and name in self.options.left_out:
                value = chance.choice([value, LEFT_OUT])
            found.append(value)
        return tuple(found)

    def _send_again(self, partition: int) -> None:
        """What a connector that was killed has sent, and not noted."""
        tail = self.waiting[partition][-self.random.choice([1, 3, 6]) :]
        while tail and tail[0].kind == "tombstone":
            tail.pop(0)
        for change in tail:
            if change.kind != "snapshot":
                self._append(change, partition)

    def _send(
        self, key: int | None, kind: str, values: Values, position: int | None
    ) -> None:
        partition = (
            self.random.randrange(PARTITIONS)
            if self.is_scattered or key is None
            else key % PARTITIONS
        )
        change = Change(key, kind, values, position, self._now, partition, 0)
        self._append(change, partition)

    def _append(self, change: Change, partition: int) -> None:
        offset = self._offsets[partition]
        self._offsets[partition] += 1
        self.waiting[partition].append(
            replace(change, partition=partition, offset=offset)
        )
