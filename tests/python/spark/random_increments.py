"""Rounds of random records, selections and accidents, each compared with a full refresh.

Beside the marts that grow by increments stand others, in schemas of their own, that are built
whole from the same bronze: after each round the two must be equal. The domains take turns,
and what came in the other's turn waits for the next.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

from sandbox.settings import PROJECT
from tests.python.world.records import LATE_PRODUCT, PRODUCTS, Records, catalogue
from tests.python.world.rounds import NO_TESTS, Rounds

# Facts that are rewritten by days, with the time that each goes by; those of captured tables
# are rewritten by keys, in rounds of their own.
TIMES = {
    file.stem: found[1]
    for file in PROJECT.glob("models/marts/*/fct_*.sql")
    if (found := re.search(r'partition_by="days\((\w+)\)"', file.read_text()))
}
MARTS = {
    folder.name: marts
    for folder in sorted(PROJECT.glob("models/marts/*"))
    if (
        marts := sorted(
            file.stem
            for file in folder.glob("*.sql")
            if file.stem in TIMES or file.stem == "dim_products"
        )
    )
}
FACTS = [mart for marts in MARTS.values() for mart in marts if mart != "dim_products"]
FIRST_DAY = date(2026, 1, 1)


class Trial(Rounds):
    """The steps of some rounds."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.records = Records(seed)
        self._products = [*PRODUCTS, LATE_PRODUCT]
        self._copies = 0

    def rounds(self, count: int) -> None:
        """A first build, and rounds of loads, accidents and an increment."""
        self._commit({"bronze.smoothies__products": catalogue(self.records, _moment())})
        self._load(30)
        self.dbt(["build", "--select", *_with_parents(FACTS), *NO_TESTS])
        domains = list(MARTS)
        self.random.shuffle(domains)
        for number in range(count):
            marts = MARTS[domains[number % len(domains)]]
            for _ in range(self.random.choice([1, 1, 2])):
                self._load(self.random.choice([1, 3, 12]))
            for _ in range(self.random.choice([0, 1, 2])):
                self.random.choice(
                    [
                        self._select,
                        self._select,
                        self._die_before_rows,
                        self._die_before_the_record,
                        self._die_beside_another,
                    ]
                )()
            self.dbt(["run", "--select", *marts])
            # Views are made in the first turn.
            whole = (
                ["build", "--select", *_with_parents(marts), *NO_TESTS]
                if number < len(domains)
                else ["run", "--full-refresh", "--select", *marts]
            )
            self.whole(whole)
            self.compare(number, _differences(marts))

    def _commit(self, tables: dict[str, list[dict[str, Any]]]) -> None:
        for table, rows in tables.items():
            self.commit(table, rows)

    def _try(self, words: list[str]) -> None:
        """What may stop, because it goes without a parent that it needs."""
        self.steps.append({"dbt": words})

    def _load(self, count: int) -> None:
        """Records of some days, some far away, some of both ends of the calendar."""
        chance, records = self.random, self.records
        spread = chance.choice([1, 5, 5, 400])
        days = [
            (FIRST_DAY + timedelta(days=chance.randrange(spread))).isoformat()
            for _ in range(chance.choice([1, 3]))
        ]
        tables = records.some(count, days, newest=chance.choice([10, 60, 1000]))
        sales = tables["bronze.pagila__sales"]
        if chance.random() < 0.3:
            time = chance.choice([None, "0001-01-01 00:03:00", "9999-12-31 23:59:59"])
            sales.append(records.sale(chance.randrange(60), time, sent_at="2026-02-01 00:00:00"))
            tables["bronze.smoothies__purchases"].append(records.purchase("CS01", time))
        if chance.random() < 0.3:
            again = dict(chance.choice(sales))
            sales.append(
                records.sale(
                    again["payment_id"],
                    again["payment_date"],
                    # A tie of times between partitions.
                    partition=chance.randrange(3),
                    sent_at=again["_kafka_timestamp"],
                )
            )
        if chance.random() < 0.3:
            for table in list(tables):
                if chance.random() < 0.5:
                    del tables[table]
        if chance.random() < 0.5:
            tables["bronze.smoothies__products"] = [
                self._product(chance.choice(days)) for _ in range(chance.choice([1, 2]))
            ]
        self._commit(tables)

    def _product(self, day: str) -> dict[str, Any]:
        chance = self.random
        product = chance.choice(self._products)
        at = f"{day} {chance.choice([0, 12, 23]):02d}:00:{chance.randrange(3):02d}"
        if chance.random() < 0.2:
            return self.records.withdrawal(product, at)
        return self.records.product(
            product,
            at,
            chance.randrange(2),
            price=chance.choice(["4.99", "5.49", "6.49"]),
            inventory_level=chance.randrange(100),
            sent_at=chance.choice([at, "2026-01-05 00:00:00"]),
        )

    def _select(self) -> None:
        """Some marts by themselves, in any order of parents and children."""
        chosen = self.random.sample([*FACTS, "dim_products"], self.random.choice([1, 2]))
        self._try(["run", "--select", *chosen])

    def _die_before_rows(self) -> None:
        """A run shows what it will change and cannot write it; a child may be built next."""
        fact = self.random.choice(FACTS)
        set_format = f"alter table marts.{fact} set tblproperties"
        self.ask(f"{set_format} ('write.format.default' = 'none')")
        self._try(["run", "--select", fact])
        if self.random.random() < 0.5:
            self._select()
        self.ask(f"alter table marts.{fact} unset tblproperties ('write.format.default')")

    def _die_before_the_record(self) -> None:
        """A run has written its rows, and is killed before it says how far it read."""
        fact = self.random.choice(FACTS)
        state = self._copy("state.read_points")
        self._try(["run", "--select", fact])
        self._put_back("state.read_points", state, fact)

    def _die_beside_another(self) -> None:
        """Two runs at once: the first writes after the second has ended, and is killed."""
        fact = self.random.choice(FACTS)
        reads = self._copy("state.read_points")
        days = self._copy("state.touched_days")
        self._try(["run", "--select", fact])
        rows = self._copy(f"marts.{fact}")
        reported = self._copy(f"(select * from state.touched_days except select * from {days})")
        self._put_back("state.read_points", reads, fact)
        self._load(3)
        self._try(["run", "--select", fact])
        later = self._copy(f"marts.{fact}")
        is_reported = f"""
            exists (
                select 1 from {reported} as reported
                where reported.model_name = 'marts.{fact}' and (
                    reported.touched_date = cast(kept.{TIMES[fact]} as date)
                    or (reported.is_onwards and (
                        reported.touched_date is null
                        or cast(kept.{TIMES[fact]} as date) >= reported.touched_date
                    ))
                    or (reported.touched_date is null and (
                        kept.{TIMES[fact]} is null
                        or year(kept.{TIMES[fact]}) not between 2 and 9998
                    ))
                )
            )
        """
        self.ask(
            f"insert overwrite marts.{fact}"
            f" select * from {later} as kept where not {is_reported}"
            f" union all select * from {rows} as kept where {is_reported}"
        )

    def _copy(self, table: str) -> str:
        self._copies += 1
        copy = f"kept.copy_{self._copies}"
        self.ask("create schema if not exists kept")
        self.ask(f"create table {copy} using iceberg as select * from {table}")
        return copy

    def _put_back(self, table: str, copy: str, fact: str) -> None:
        condition = f"model_name = 'marts.{fact}'"
        self.ask(
            f"insert into {table} replace where {condition} select * from {copy} where {condition}"
        )


def _moment() -> str:
    return f"{FIRST_DAY - timedelta(days=20)} 08:00:00"


def _with_parents(marts: list[str]) -> list[str]:
    return [f"+{mart}" for mart in marts]


def _differences(marts: list[str]) -> str:
    """A query of the marts that are not what a full refresh makes, with how many rows."""
    parts = [
        f"select '{mart}' as mart, '{side}' as side, count(*) as row_count"
        f" from (select * from {one} except all select * from {other})"
        for mart in marts
        for side, one, other in [
            ("only by increments", f"marts.{mart}", f"dev_marts.{mart}"),
            ("only by a full refresh", f"dev_marts.{mart}", f"marts.{mart}"),
        ]
    ]
    return f"select * from ({' union all '.join(parts)}) where row_count > 0"
