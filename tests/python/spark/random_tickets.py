"""Rounds of random changes of the ticket shop's seven tables, read at different paces.

After each round the facts that grew must be those that a full refresh makes of the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from tests.python.world.debezium import binlog, flattened, lsn
from tests.python.world.kafka import Kafka, Row
from tests.python.world.rounds import NO_TESTS, Rounds, differences

FACTS = ("fct_ticket_sales", "fct_ticket_listings")
GROWN = ["build", "--select", *(f"+{fact}" for fact in FACTS), *NO_TESTS]
PARTITIONS = 2
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_FIRST_DATE_ID = 1827
_FIRST_DAY = 13_879  # 2008-01-01, in days since 1970
_MICROS_OF_A_DAY = 86_400_000_000
_KINDS = ("create", "update", "update", "update", "delete", "rename", "again", "back")


@dataclass(frozen=True)
class Table:
    """A table of the shop.

    Attributes:
        schema: Of the database.
        key: The column that names a row.
        keys: The keys that a row may have: few, so that they come back.
        values: Makes the other columns.
    """

    schema: str
    key: str
    keys: range
    values: Callable[[Random], Row]

    @property
    def has_binlog(self) -> bool:
        return self.schema == "ecomm"


def _category(random: Random) -> Row:
    return {"catgroup": random.choice(["Shows", "Concerts"]), "catname": "Opera"}


def _venue(random: Random) -> Row:
    return {
        "venuename": random.choice(["Opera House", "Music Hall"]),
        "venuecity": "Boston",
        "venuestate": "MA",
        "venueseats": random.choice([None, 2000]),
    }


def _event(random: Random) -> Row:
    return {
        "venueid": random.choice(TABLES["venue"].keys),
        "catid": random.choice(TABLES["category"].keys),
        "dateid": random.choice(TABLES["date"].keys),
        "eventname": random.choice(["Tosca", "Carmen"]),
        "starttime": _FIRST_DAY * _MICROS_OF_A_DAY,
    }


def _user(random: Random) -> Row:
    return {
        "username": "AAA00AAA",
        "firstname": random.choice(["Ada", "Alan"]),
        "lastname": random.choice(["Byron", "Turing"]),
        "city": random.choice(["London", "Paris", None]),
        "state": "NY",
    }


def _date(random: Random) -> Row:
    return {
        "caldate": _FIRST_DAY + random.choice([0, 100, 200]),
        "day": "TU",
        "week": 1,
        "month": "JAN",
        "qtr": "1",
        "year": 2008,
        "holiday": random.choice([0, 1]),
    }


def _listing(random: Random) -> Row:
    return {
        "sellerid": random.choice(TABLES["user"].keys),
        "eventid": random.choice(TABLES["event"].keys),
        "dateid": random.choice(TABLES["date"].keys),
        "numtickets": random.choice([2, 4]),
        "priceperticket": random.choice(["20.00", "36.00"]),
        "totalprice": "80.00",
        "listtime": _FIRST_DAY * 86_400_000,
    }


def _sale(random: Random) -> Row:
    return {
        "listid": random.choice(TABLES["listing"].keys),
        "sellerid": random.choice(TABLES["user"].keys),
        "buyerid": random.choice(TABLES["user"].keys),
        "eventid": random.choice(TABLES["event"].keys),
        "dateid": random.choice(TABLES["date"].keys),
        "qtysold": random.choice([1, 3]),
        "pricepaid": random.choice(["20.00", "100.00"]),
        "commission": "3.00",
        "saletime": (_FIRST_DAY + random.randrange(5)) * _MICROS_OF_A_DAY,
    }


TABLES = {
    "category": Table("ems", "catid", range(1, 3), _category),
    "venue": Table("ems", "venueid", range(1, 4), _venue),
    "event": Table("ems", "eventid", range(1, 6), _event),
    "user": Table("crm", "userid", range(1, 7), _user),
    "date": Table("ecomm", "dateid", range(_FIRST_DATE_ID, _FIRST_DATE_ID + 4), _date),
    "listing": Table("ecomm", "listid", range(1, 9), _listing),
    "sale": Table("ecomm", "saleid", range(1, 21), _sale),
}


class Shop:
    """The shop's databases: their rows, and the records that ingest has not read.

    Args:
        random: Decides everything.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = _BEGIN
        self._place = 1_000
        self._rows: dict[str, dict[int, Row]] = {name: {} for name in TABLES}
        self._gone: dict[str, dict[int, Row]] = {name: {} for name in TABLES}
        self._waiting: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._sent: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._kafka = {
            name: Kafka(f"tickit.{table.schema}.{name}") for name, table in TABLES.items()
        }

    def fill(self) -> None:
        """Half of all rows, as a snapshot reads them."""
        for name, table in TABLES.items():
            for key in table.keys[::2]:
                self._write(name, key, "r", table.values(self._random))

    def change(self) -> None:
        """Something happens to a row of some table; most often to a sale."""
        random = self._random
        name = random.choice([*TABLES, "sale", "sale", "sale", "listing", "user"])
        table, rows, gone = TABLES[name], self._rows[name], self._gone[name]
        absent = [key for key in table.keys if key not in rows]
        kind = random.choice(_KINDS)
        if kind == "create" and absent:
            self._write(name, random.choice(absent), "c", table.values(random))
        elif kind == "update" and rows:
            key = random.choice([*rows])
            new = table.values(random)
            column = random.choice([*new])
            self._write(name, key, "u", {**rows[key], column: new[column]})
        elif kind == "delete" and rows:
            self._delete(name, random.choice([*rows]))
        elif kind == "rename" and rows and absent:
            key = random.choice([*rows])
            row = rows[key]
            self._delete(name, key)
            self._write(name, random.choice(absent), "c", row)
        elif kind == "again" and self._sent[name]:
            self._waiting[name].append(random.choice(self._sent[name][-5:]))
        elif kind == "back" and gone:
            key = random.choice([*gone])
            if key not in rows:
                self._write(name, key, "c", gone[key])

    def change_all(self, name: str) -> None:
        """An hour later each row of a table says something else."""
        self._now += timedelta(hours=1)
        for key, row in [*self._rows[name].items()]:
            self._write(name, key, "u", row | TABLES[name].values(self._random))

    def is_waiting(self, name: str) -> bool:
        """Whether there are records that ingest has not read."""
        return bool(self._waiting[name])

    def deliver(self, name: str, count: int) -> list[Row]:
        """Records of a table in the order in which Kafka has them: some come late."""
        waiting = self._waiting[name]
        taken, left = waiting[:count], waiting[count:]
        if len(taken) > 1 and self._random.random() < 0.4:
            left.append(taken.pop(self._random.randrange(len(taken))))
        self._waiting[name] = left
        kafka, key = self._kafka[name], TABLES[name].key
        self._sent[name] += taken
        return [
            kafka.record(row["_key"][key] % PARTITIONS, self._now.isoformat(), **row)
            for row in taken
        ]

    def _delete(self, name: str, key: int) -> None:
        row = self._rows[name].pop(key)
        self._gone[name][key] = row
        self._record(name, key, "d", row)

    def _write(self, name: str, key: int, kind: str, row: Row) -> None:
        self._rows[name][key] = row
        self._record(name, key, kind, row)

    def _record(self, name: str, key: int, kind: str, row: Row) -> None:
        """Times of MariaDB's log are whole seconds."""
        table = TABLES[name]
        self._place += 10
        self._now += timedelta(milliseconds=self._random.choice([0, 1, 1_700]))
        millis = round(self._now.timestamp() * 1_000)
        place = lsn(self._place)
        if table.has_binlog:
            place, millis = binlog(self._place), millis // 1_000 * 1_000
        at = {table.key: key}
        record = flattened(name, kind, place, millis, **(at | row))
        self._waiting[name].append(record | {"_key": at})


class Trial(Rounds):
    """The steps of some rounds, and what they must give.

    Attributes:
        counts: Those that count the rows of a fact.
        written: Those that count the commits of sales before and after a build that has to write
            none.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._shop = Shop(self.random)
        self.counts: list[int] = []
        self.written: list[int] = []

    def rounds(self, count: int) -> None:
        """Changes of all tables, and then of what facts have as it was before."""
        self._shop.fill()
        for number in range(count):
            for _ in range(self.random.choice([0, 6, 30]) if number else 10):
                self._shop.change()
            for name in TABLES:
                most = self.random.choice([0, 2, 1_000]) if number else 1_000
                self._commit(name, most)
            self._compare(number)
        for name in TABLES:
            while self._shop.is_waiting(name):
                self._commit(name, 1_000)
        self.dbt(GROWN)
        for name in TABLES:
            if name not in ("sale", "listing"):
                self._shop.change_all(name)
                self._commit(name, 1_000)
        commits = "select count(*) from marts.fct_ticket_sales.snapshots"
        self.written.append(self.ask(commits))
        self.dbt(GROWN)
        # A sale has all of this as it was then.
        self.written.append(self.ask(commits))
        self._compare(count)

    def _compare(self, number: int) -> None:
        """An increment, and a full refresh from the second on."""
        self.dbt(GROWN)
        whole = [*GROWN, "--full-refresh"] if number else GROWN
        self.whole(whole)
        for fact in FACTS:
            self.compare(number, differences(f"marts.{fact}"))
            self.counts.append(self.ask(f"select count(*) from marts.{fact}"))

    def _commit(self, name: str, most: int) -> None:
        self.commit(f"bronze.tickit__{name}", self._shop.deliver(name, most))
