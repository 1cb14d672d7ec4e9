"""Sale events: who pays how much, and from where.

``places.json`` lists the countries with their weights against each other and their
cities, each with its district; either may be null. Four of its names stand on no list of
the world's countries, as in data that people typed: "Untied States", "Brasil",
"Yugoslavia" and "Atlantis". A customer lives in one place, in every run and with every
seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from random import Random

from sandbox.streams import avro_bytes
from sandbox.streams.generator import Generator, of_draws
from sandbox.streams.timeline import Draw

CUSTOMERS = 4_000
LARGEST_PAYMENT_ID = 2**31 - 1

# Cents, and how many of a hundred sales cost that.
PRICES = {
    299: 24,
    399: 6,
    499: 21,
    599: 19,
    699: 7,
    799: 10,
    899: 5,
    999: 4,
    1099: 2,
    1199: 1,
    1299: 1,
}


@dataclass(frozen=True)
class Customer:
    """Who pays, and where they live."""

    customer_id: int
    country: str
    city: str | None
    district: str | None


@cache
def customers() -> tuple[Customer, ...]:
    """All customers by id, from 1; each country has at least one, else by its weight."""
    places = json.loads((files(__package__) / "places.json").read_text("utf-8"))
    total = sum(place["weight"] for place in places)
    homes = []
    for place in places:
        share = max(1, round(CUSTOMERS * place["weight"] / total))
        cities = place["places"]
        homes += [(place["country"], *cities[n % len(cities)]) for n in range(share)]
    _shuffle(homes)
    return tuple(
        Customer(customer_id, country, city, district)
        for customer_id, (country, city, district) in enumerate(homes, start=1)
    )


def sales(key_schema_id: int, value_schema_id: int) -> Draw:
    """A generator of sales, framed with the ids that the registry gave their schemas.

    What does not change from one sale of a customer to the next is encoded once.
    """
    key_frame, value_frame = (avro_bytes.frame(key_schema_id), avro_bytes.frame(value_schema_id))
    buyers = [
        (
            key_frame + avro_bytes.integer(who.customer_id),
            avro_bytes.integer(who.customer_id),
            avro_bytes.optional_string(who.city)
            + avro_bytes.optional_string(who.district)
            + avro_bytes.string(who.country),
        )
        for who in customers()
    ]
    amounts = [avro_bytes.decimal(cents) for cents, share in PRICES.items() for _ in range(share)]
    integer = avro_bytes.integer

    def draw(random: Callable[[], float], payment_id: int, paid: int) -> tuple[bytes, bytes]:
        key, customer_id, place = buyers[int(random() * len(buyers))]
        amount = amounts[int(random() * len(amounts))]
        payment = integer(payment_id)
        return key, b"".join((value_frame, payment, customer_id, amount, integer(paid), place))

    return draw


def _shuffle(homes: list[tuple[str, str | None, str | None]]) -> None:
    """In place, the same in every Python: only ``random()`` is promised to stay."""
    random = Random(0).random
    for last in range(len(homes) - 1, 0, -1):
        other = int(random() * (last + 1))
        homes[last], homes[other] = homes[other], homes[last]


GENERATOR = Generator(
    name="pagila.sales",
    make=of_draws("pagila.sales", sales),
    command="pagila",
    number="payment_id",
    largest=LARGEST_PAYMENT_ID,
    help="Sales of the Pagila shops, to topic pagila.sales.avro, keyed by customer.",
)
