"""Records of captured tables, in the forms of their connectors."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.python.spark.captured_records import PARTITIONS, Artists
from tests.python.spark.increments_records import Kafka, Row

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
# By table: its key, and two rows of it.
_PAGILA: dict[str, tuple[list[str], list[Row]]] = {
    "film": (
        ["film_id"],
        [
            {"film_id": 1, **_FILM},
            {"film_id": 2, **_FILM, "special_features": [], "length": None},
        ],
    ),
    "actor": (
        ["actor_id"],
        [
            {"actor_id": 1, "first_name": "PENELOPE", "last_name": "GUINESS"},
            {"actor_id": 2, "first_name": "", "last_name": "O'Neil "},
        ],
    ),
    "category": (
        ["category_id"],
        [{"category_id": 1, "name": "Action"}, {"category_id": 2, "name": "Drama"}],
    ),
    "language": (
        ["language_id"],
        [
            {"language_id": 1, "name": "English             "},
            {"language_id": 2, "name": "日本語"},
        ],
    ),
    "film_actor": (
        ["actor_id", "film_id"],
        [{"actor_id": 1, "film_id": 1}, {"actor_id": 1, "film_id": 2}],
    ),
    "film_category": (
        ["film_id", "category_id"],
        [{"film_id": 1, "category_id": 1}, {"film_id": 2, "category_id": 1}],
    ),
    "address": (
        ["address_id"],
        [
            {
                "address_id": at,
                "address": f"{at} Hanoi Way",
                "address2": None if at == 1 else "",
                "district": "São Paulo",
                "city_id": 300,
                "postal_code": "35200",
                "phone": "28303384290",
            }
            for at in (1, 2)
        ],
    ),
}
_LIKED = "sports theatre concerts jazz classical opera rock vegas broadway musicals"
# By table: its database, its key, and two rows of it.
_TICKIT: dict[str, tuple[str, str, list[Row]]] = {
    "date": (
        "ecomm",
        "dateid",
        [
            {
                "dateid": at,
                "caldate": 13878 + at,
                "day": "SU",
                "week": 1,
                "month": "JAN",
                "qtr": "1",
                "year": 2008,
                "holiday": at % 2,
            }
            for at in (1, 2)
        ],
    ),
    "listing": (
        "ecomm",
        "listid",
        [
            {
                "listid": at,
                "sellerid": 1,
                "eventid": 1,
                "dateid": 1,
                "numtickets": 4,
                "priceperticket": "12.50",
                "totalprice": "50.00",
                "listtime": _AT + at,
            }
            for at in (1, 2)
        ],
    ),
    "sale": (
        "ecomm",
        "saleid",
        [
            {
                "saleid": at,
                "listid": 1,
                "sellerid": 1,
                "buyerid": 1,
                "eventid": 1,
                "dateid": 1,
                "qtysold": 2,
                "pricepaid": "25.00",
                "commission": "3.75",
                "saletime": (_AT + at) * 1000 + 1,
            }
            for at in (1, 2)
        ],
    ),
    "category": (
        "ems",
        "catid",
        [
            {
                "catid": at,
                "catgroup": "Concerts",
                "catname": "Pop" if at == 1 else "",
                "catdesc": "All rock and pop music concerts ",
            }
            for at in (1, 2)
        ],
    ),
    "event": (
        "ems",
        "eventid",
        [
            {
                "eventid": at,
                "venueid": 1,
                "catid": 1,
                "dateid": 1,
                "eventname": "Götterdämmerung 東京",
                # One is before 1970.
                "starttime": (_AT if at == 1 else -_AT) * 1000 + 1,
            }
            for at in (1, 2)
        ],
    ),
    "venue": (
        "ems",
        "venueid",
        [
            {
                "venueid": at,
                "venuename": "Théâtre du Châtelet",
                "venuecity": "Montréal",
                "venuestate": "QC" if at == 1 else "Q ",
                "venueseats": None if at == 1 else 0,
            }
            for at in (1, 2)
        ],
    ),
    "user": (
        "crm",
        "userid",
        [
            {
                "userid": at,
                "username": "JSG99FHE" if at == 1 else "AB      ",
                "firstname": "Zoë",
                "lastname": "O'Neil",
                "city": "São Paulo",
                "state": None if at == 1 else "  ",
                "email": "zoe.o'neil@example.org",
                "phone": "(555) 010-0123",
                # Said, denied and unknown.
                **{
                    f"like{what}": (True, False, None)[(at + number) % 3]
                    for number, what in enumerate(_LIKED.split())
                },
            }
            for at in (1, 2)
        ],
    ),
}


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
            row
            for partition in range(PARTITIONS)
            for row in self.artists.deliver(partition, 1000)
        ]

    def artwork(self, artwork_id: int, kind: str, **values: Any) -> Row:
        """A record of an artwork; without a kind, a tombstone."""
        self._lsn += 8
        row = {"_key": {"artwork_id": artwork_id}}
        if not kind:
            return self._kafka.record(0, None, **row, _is_tombstone=True)
        return self._kafka.record(
            0,
            None,
            **row,
            **{
                "artwork_id": artwork_id,
                "__op": kind,
                "__table": "artworks",
                "__lsn": self._lsn,
                "__source_ts_ms": 1767225600000 + self._lsn * 997,
                "__deleted": "true" if kind == "d" else "false",
                "_schema_id": 2,
                "is_catalogued": False,
                **values,
            },
        )


class Captured:
    """Pagila's and TICKIT's captured tables, and the records that were sent of each."""

    def __init__(self) -> None:
        self._kafka = {
            f"bronze.pagila__{name}": Kafka(f"pagila.public.{name}") for name in _PAGILA
        } | {
            f"bronze.tickit__{name}": Kafka(f"tickit.{database}.{name}")
            for name, (database, _, _) in _TICKIT.items()
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
        for name, (_, _, (one, other)) in _TICKIT.items():
            made[f"bronze.tickit__{name}"] = [
                self._flattened(name, "r", one),
                self._flattened(name, "c", other),
            ]
        _, other = _TICKIT["listing"][2]
        cheaper = {"priceperticket": "11.00", "totalprice": "44.00"}
        changed = self._flattened("listing", "u", other | cheaper)
        made["bronze.tickit__listing"].append(changed)
        made[_POLLED] = [self._polled(row, 1) for row in _PAGILA["address"][1]]
        return made

    def increment(self) -> dict[str, list[Row]]:
        """A delete, and what was sent again; categories are emptied by a TRUNCATE."""
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
        for name, (_, _, (one, other)) in _TICKIT.items():
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

    def _envelope(
        self, name: str, key: list[str], op: str, before: Row | None, after: Row | None
    ) -> Row:
        self._place += 8
        row = after or before
        return self._kafka[f"bronze.pagila__{name}"].record(
            0,
            None,
            _key=row and {column: row[column] for column in key},
            before=before and before | {"last_update": _UPDATED},
            after=after and after | {"last_update": _UPDATED},
            source={
                "ts_ms": _AT + self._place * 997,
                "snapshot": "true" if op == "r" else None,
                "lsn": self._place,
            },
            op=op,
            _schema_id=3,
        )

    def _flattened(self, name: str, op: str, row: Row) -> Row:
        database, key, _ = _TICKIT[name]
        self._place += 8
        place: Row = {"__lsn": self._place}
        if database == "ecomm":
            place = {
                "__source_file": "mysql-bin.000001",
                "__source_pos": self._place,
                "__source_row": 0,
            }
        said = {
            "__op": op,
            "__table": name,
            "__source_ts_ms": _AT + self._place * 997,
            **place,
            "__deleted": "true" if op == "d" else "false",
            "_schema_id": 4,
        }
        at = {key: row[key]}
        kafka = self._kafka[f"bronze.tickit__{name}"]
        return kafka.record(0, None, _key=at, **row, **said)

    def _polled(self, row: Row, second: int) -> Row:
        """A row as a query found it, changed in a second of its own."""
        row = row | {"last_update": f"2026-01-02T03:04:0{second}.000006Z"}
        at = {"address_id": row["address_id"]}
        return self._kafka[_POLLED].record(
            0, None, _key=at, **row, _json=json.dumps(row)
        )

    def _tombstone(self, table: str, key: list[str], row: Row) -> Row:
        at = {column: row[column] for column in key}
        return self._kafka[table].record(0, None, _key=at, _is_tombstone=True)

    def _again(self, table: str, row: Row) -> Row:
        said: dict[str, Any] = {
            column: value
            for column, value in row.items()
            if not column.startswith("_kafka")
        }
        return self._kafka[table].record(0, None, **said)
