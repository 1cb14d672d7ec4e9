"""Records of captured tables, in the forms of their connectors."""

from __future__ import annotations

import json
from itertools import islice
from random import Random
from typing import Any

from tests.python.world import debezium
from tests.python.world.artists import PARTITIONS, Artists
from tests.python.world.kafka import Kafka, Row, rows_of, said_by

_AT = 1767225600000
_UPDATED = "2026-01-02T03:04:05.000006Z"
_FILM = {
    "title": "Zürich ",
    "description": "東京 'and' \"sons\"",
    "release_year": 2006,
    "language_id": 1,
    "rental_duration": 6,
    "rental_rate": "0.99",
    "length": 86,
    "replacement_cost": "20.99",
    "rating": "PG-13",
    "special_features": ["Trailers", None, "Deleted Scenes"],
    "fulltext": "'sons':2 'zürich':1",
}
_OTHER_FILM: Row = {"special_features": [], "length": None}
_NAMED = ("Zoë", "O'Neil", "São Paulo")
_REACHED = ("zoe.o'neil@example.org", "(555) 010-0123")
# By table: how many columns are its key, and two rows of it.
_PAGILA: dict[str, tuple[int, list[Row]]] = {
    "film": (1, [{"film_id": 1, **_FILM}, {"film_id": 2, **_FILM, **_OTHER_FILM}]),
    "actor": (1, rows_of(
        "actor_id first_name last_name", (1, "PENELOPE", "GUINESS"), (2, "", "O'Neil ")
    )),
    "category": (1, rows_of("category_id name", (1, "Action"), (2, "Drama"))),
    "language": (1, rows_of("language_id name", (1, "English             "), (2, "日本語"))),
    "film_actor": (2, rows_of("actor_id film_id", (1, 1), (1, 2))),
    "film_category": (2, rows_of("film_id category_id", (1, 1), (2, 1))),
    "address": (1, rows_of(
        "address_id address address2 district city_id postal_code phone",
        (1, "1 Hanoi Way", None, "São Paulo", 300, "35200", "28303384290"),
        (2, "2 Hanoi Way", "", "São Paulo", 300, "35200", "28303384290"),
    )),
}  # fmt: skip
_LIKED = "sports theatre concerts jazz classical opera rock vegas broadway musicals"
# Said, denied and unknown.
_LIKES = [
    {
        f"like{what}": (True, False, None)[(at + number) % 3]
        for number, what in enumerate(_LIKED.split())
    }
    for at in (1, 2)
]
# By table: its database, and two rows of it; its first column is its key.
_TICKIT: dict[str, tuple[str, list[Row]]] = {
    "date": ("ecomm", rows_of(
        "dateid caldate day week month qtr year holiday",
        (1, 13879, "SU", 1, "JAN", "1", 2008, 1),
        (2, 13880, "SU", 1, "JAN", "1", 2008, 0),
    )),
    "listing": ("ecomm", rows_of(
        "listid sellerid eventid dateid numtickets priceperticket totalprice listtime",
        (1, 1, 1, 1, 4, "12.50", "50.00", _AT + 1),
        (2, 1, 1, 1, 4, "12.50", "50.00", _AT + 2),
    )),
    "sale": ("ecomm", rows_of(
        "saleid listid sellerid buyerid eventid dateid qtysold pricepaid commission saletime",
        (1, 1, 1, 1, 1, 1, 2, "25.00", "3.75", (_AT + 1) * 1000 + 1),
        (2, 1, 1, 1, 1, 1, 2, "25.00", "3.75", (_AT + 2) * 1000 + 1),
    )),
    "category": ("ems", rows_of(
        "catid catgroup catname catdesc",
        (1, "Concerts", "Pop", "All rock and pop music concerts "),
        (2, "Concerts", "", "All rock and pop music concerts "),
    )),
    "event": ("ems", rows_of(
        "eventid venueid catid dateid eventname starttime",
        (1, 1, 1, 1, "Götterdämmerung 東京", _AT * 1000 + 1),
        # It is before 1970.
        (2, 1, 1, 1, "Götterdämmerung 東京", -_AT * 1000 + 1),
    )),
    "venue": ("ems", rows_of(
        "venueid venuename venuecity venuestate venueseats",
        (1, "Théâtre du Châtelet", "Montréal", "QC", None),
        (2, "Théâtre du Châtelet", "Montréal", "Q ", 0),
    )),
    "user": ("crm", [row | likes for likes, row in zip(_LIKES, rows_of(
        "userid username firstname lastname city state email phone",
        (1, "JSG99FHE", *_NAMED, None, *_REACHED),
        (2, "AB      ", *_NAMED, "  ", *_REACHED),
    ), strict=True)]),
}  # fmt: skip


_POLLED = "bronze.pagila__polled_address"
_CHANGES: dict[str, Row] = {
    "date": {"week": 2},
    "listing": {"totalprice": "55.00"},
    # Some tickets are given back.
    "sale": {"qtysold": 1, "pricepaid": "12.50", "commission": "1.88"},
    "category": {"catdesc": None},
    "event": {"eventname": "Siegfried"},
    "venue": {"venueseats": 2010},
    "user": {"phone": "", "likejazz": False},
    "film": {"special_features": None},
}


class Museum:
    """The museum's tables: what its database did, and what of it ingest has not read."""

    def __init__(self, seed: int) -> None:
        self.artists = Artists(Random(seed))
        self._kafka = Kafka("moma.public.artworks")
        self._lsn = 5000

    def artist_rows(self) -> list[Row]:
        """All records of artists that wait."""
        return [
            row for partition in range(PARTITIONS) for row in self.artists.deliver(partition, 1000)
        ]

    def artwork(self, artwork_id: int, kind: str, **values: Any) -> Row:
        """A record of an artwork; without a kind, a tombstone."""
        self._lsn += 8
        row = {"_key": {"artwork_id": artwork_id}}
        if not kind:
            return self._kafka.record(0, None, **row, _is_tombstone=True)
        millis = 1767225600000 + self._lsn * 997
        place = debezium.lsn(self._lsn)
        row |= {"artwork_id": artwork_id, "is_catalogued": False} | values
        said = debezium.flattened("artworks", kind, place, millis, 2, **row)
        return self._kafka.record(0, None, **said)


class Captured:
    """Pagila's and TICKIT's captured tables, and the records that were sent of each."""

    def __init__(self) -> None:
        self._kafka = {
            f"bronze.pagila__{name}": Kafka(f"pagila.public.{name}") for name in _PAGILA
        } | {
            f"bronze.tickit__{name}": Kafka(f"tickit.{database}.{name}")
            for name, (database, _) in _TICKIT.items()
        }
        self._kafka[_POLLED] = Kafka("pagila.poll.address")
        self._place = 5000

    def first(self) -> dict[str, list[Row]]:
        """By bronze table: a row from the snapshot, and one that came after it; a new price."""
        made = {}
        for name, (key, (one, other)) in _PAGILA.items():
            made[f"bronze.pagila__{name}"] = [
                self._envelope(name, key, "r", None, one),
                self._envelope(name, key, "c", None, other),
            ]
        for name, (_, (one, other)) in _TICKIT.items():
            made[f"bronze.tickit__{name}"] = [
                self._flattened(name, "r", one),
                self._flattened(name, "c", other),
            ]
        _, other = _TICKIT["listing"][1]
        cheaper = {"priceperticket": "11.00", "totalprice": "44.00"}
        changed = self._flattened("listing", "u", other | cheaper)
        made["bronze.tickit__listing"].append(changed)
        made[_POLLED] = [self._polled(row, 1) for row in _PAGILA["address"][1]]
        return made

    def increment(self) -> dict[str, list[Row]]:
        """A delete, and what was sent again; categories are truncated."""
        made = {}
        for name, (key, (one, other)) in _PAGILA.items():
            table = f"bronze.pagila__{name}"
            new = one | _CHANGES.get(name, {})
            changed = self._envelope(name, key, "u", one, new)
            made[table] = [
                changed,
                self._again(table, changed),
                self._envelope(name, key, "d", other, None),
                self._tombstone(table, key, other),
            ]
            if name == "category":
                made[table] += [
                    self._envelope(name, key, "t", None, None),
                    self._envelope(name, key, "c", None, one | {"category_id": 3}),
                ]
        for name, (_, (one, other)) in _TICKIT.items():
            table = f"bronze.tickit__{name}"
            changed = self._flattened(name, "u", one | _CHANGES[name])
            gone = self._flattened(name, "d", other)
            made[table] = [changed, gone, self._again(table, gone)]
            # Somebody is left who buys nothing.
            if name == "user":
                made[table].append(self._flattened(name, "c", other | {"userid": 3}))
        one, other = _PAGILA["address"][1]
        changed = self._polled(one | {"phone": ""}, 2)
        made[_POLLED] = [changed, self._again(_POLLED, changed), self._polled(other, 1)]
        return made

    def _envelope(self, name: str, key: int, op: str, before: Row | None, after: Row | None) -> Row:
        self._place += 8
        row = after or before
        said = debezium.envelope(
            op,
            before and before | {"last_update": _UPDATED},
            after and after | {"last_update": _UPDATED},
            self._place,
            _AT + self._place * 997,
        )
        at = row and dict(islice(row.items(), key))
        kafka = self._kafka[f"bronze.pagila__{name}"]
        return kafka.record(0, None, _key=at, _schema_id=3, **said)

    def _flattened(self, name: str, op: str, row: Row) -> Row:
        database, (one, _) = _TICKIT[name]
        key = next(iter(one))
        self._place += 8
        place = debezium.lsn(self._place)
        if database == "ecomm":
            place = debezium.binlog(self._place, "mysql-bin.000001")
        millis = _AT + self._place * 997
        said = debezium.flattened(name, op, place, millis, 4, **row)
        kafka = self._kafka[f"bronze.tickit__{name}"]
        return kafka.record(0, None, _key={key: row[key]}, **said)

    def _polled(self, row: Row, second: int) -> Row:
        """A row as a query found it, changed in a second of its own."""
        row = row | {"last_update": f"2026-01-02T03:04:0{second}.000006Z"}
        at = {"address_id": row["address_id"]}
        return self._kafka[_POLLED].record(0, None, _key=at, **row, _json=json.dumps(row))

    def _tombstone(self, table: str, key: int, row: Row) -> Row:
        at = dict(islice(row.items(), key))
        return self._kafka[table].record(0, None, _key=at, _is_tombstone=True)

    def _again(self, table: str, row: Row) -> Row:
        return self._kafka[table].record(0, None, **said_by(row))
