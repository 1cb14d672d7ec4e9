"""Names and places as people have them, from Faker."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sandbox.databases.transactions import one_of
from sandbox.streams.generator import Chance

_SEED = 1
_FIRST_NAMES, _LAST_NAMES, _PLACES = 2_000, 3_000, 1_500
# What a column takes.
_CITY_WIDTH = 30


class Names(NamedTuple):
    """What is drawn from; frequent names stand there often.

    Attributes:
        places: Cities, each with its state's two letters.
    """

    first: tuple[str, ...]
    last: tuple[str, ...]
    places: tuple[tuple[str, str], ...]

    def person(self, random: Chance) -> tuple[str, str]:
        """A first and a last name."""
        return one_of(random, self.first), one_of(random, self.last)


@cache
def names() -> Names:
    """The same ones always: who is called what is the chance of whoever draws."""
    from faker import Faker

    faker = Faker("en_US")
    faker.seed_instance(_SEED)
    return Names(
        tuple(faker.first_name() for _ in range(_FIRST_NAMES)),
        tuple(faker.last_name() for _ in range(_LAST_NAMES)),
        tuple((faker.city()[:_CITY_WIDTH], faker.state_abbr(False, False)) for _ in range(_PLACES)),
    )
