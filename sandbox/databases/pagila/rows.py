"""Films, their actors and categories, and addresses, as Pagila has them.

Every twentieth description is a whole script: tens of kilobytes of words that nobody has
used before, which PostgreSQL keeps outside of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

from sandbox.databases.pagila import words
from sandbox.databases.tables import Row
from sandbox.databases.transactions import one_of, whole
from sandbox.streams.generator import Chance

_SCRIPTS = 0.05
_LEAST_SCRIPT, _MOST_SCRIPT = 10_000, 30_000
# char(20): the database gives it back with blanks.
_NAME_WIDTH = 20


def rows(seed: int, films: int) -> Iterator[tuple[str, Row]]:
    """The films, and the others in Pagila's proportions: a fifth as many actors."""
    random = Random(seed).random
    actors, addresses = max(1, films // 5), max(1, films * 3 // 5)
    for film_id in range(1, films + 1):
        yield "film", film(random, film_id)
    for actor_id in range(1, actors + 1):
        yield "actor", actor(random, actor_id)
    for category_id, name in enumerate(words.CATEGORIES, start=1):
        yield "category", {"category_id": category_id, "name": name}
    for language_id, name in enumerate(words.LANGUAGES, start=1):
        yield "language", language(language_id, name)
    for film_id in range(1, films + 1):
        cast = {whole(random, 1, actors) for _ in range(whole(random, 1, 9))}
        for actor_id in sorted(cast):
            yield "film_actor", {"actor_id": actor_id, "film_id": film_id}
    for film_id in range(1, films + 1):
        category_id = whole(random, 1, len(words.CATEGORIES))
        yield "film_category", {"film_id": film_id, "category_id": category_id}
    for address_id in range(1, addresses + 1):
        yield "address", address(random, address_id)


def film(random: Chance, film_id: int) -> Row:
    """A film; its full text and the time of its last update are the database's."""
    return {
        "film_id": film_id,
        "title": f"{one_of(random, words.ADJECTIVES)} {one_of(random, words.NOUNS)}",
        "description": description(random),
        "release_year": None if random() < 0.03 else whole(random, 1925, 2024),
        "language_id": whole(random, 1, len(words.LANGUAGES)),
        "original_language_id": 5 if random() < 0.05 else None,
        "rental_duration": whole(random, 3, 7),
        "rental_rate": Decimal(one_of(random, words.RATES)),
        "length": None if random() < 0.02 else whole(random, 46, 185),
        "replacement_cost": replacement_cost(random),
        "rating": None if random() < 0.02 else one_of(random, words.RATINGS),
        "special_features": features(random),
    }


def description(random: Chance) -> str | None:
    """What a film is about: a sentence, or a whole script."""
    at = random()
    if at < 0.02:
        return None
    roles = [one_of(random, words.ROLES) for _ in range(3)]
    plot = one_of(random, words.PLOTS).format(
        one_of(random, words.MOODS),
        *roles[:2],
        one_of(random, words.DEEDS),
        roles[2],
        one_of(random, words.PLACES),
    )
    return f"{plot}\n{script(random)}" if at > 1 - _SCRIPTS else plot


def script(random: Chance) -> str:
    """So many words that PostgreSQL cannot make them small."""
    left = whole(random, _LEAST_SCRIPT, _MOST_SCRIPT)
    words_drawn: list[str] = []
    while left > 0:
        word = "".join(one_of(random, words.SYLLABLES) for _ in range(whole(random, 2, 5)))
        words_drawn.append(word)
        left -= len(word) + 1
    return " ".join(words_drawn)


def replacement_cost(random: Chance) -> Decimal:
    """What a lost tape costs."""
    return Decimal(whole(random, 9, 29) * 100 + 99).scaleb(-2)


def features(random: Chance) -> list[str | None] | None:
    """Some of them, here and there a null; null and an empty list are two different things."""
    if random() < 0.04:
        return None
    drawn = [(random(), feature) for feature in words.FEATURES]
    return [None if at < 0.02 else feature for at, feature in drawn if at < 0.5]


def actor(random: Chance, actor_id: int) -> Row:
    """Somebody who plays in films."""
    return {
        "actor_id": actor_id,
        "first_name": one_of(random, words.FIRST_NAMES),
        "last_name": one_of(random, words.LAST_NAMES),
    }


def language(language_id: int, name: str) -> Row:
    """A language, its name as ``char(20)`` keeps it."""
    return {"language_id": language_id, "name": name.ljust(_NAME_WIDTH)}


def address(random: Chance, address_id: int) -> Row:
    """An address; its second line is empty or null."""
    street = f"{one_of(random, words.TOWNS)} {one_of(random, words.STREETS)}"
    return {
        "address_id": address_id,
        "address": f"{whole(random, 1, 1999)} {street}",
        "address2": None if random() < 0.1 else "",
        "district": one_of(random, words.DISTRICTS),
        "city_id": whole(random, 1, 600),
        "postal_code": postal_code(random),
        "phone": phone(random),
    }


def postal_code(random: Chance) -> str | None:
    """Digits, of which the first may be 0."""
    at = random()
    if at < 0.03:
        return None if at < 0.01 else ""
    return f"{whole(random, 0, 99_999):05}"


def phone(random: Chance) -> str:
    """Ten to twelve digits, or nothing."""
    return "" if random() < 0.02 else str(whole(random, 10**9, 10**12 - 1))
