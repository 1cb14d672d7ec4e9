"""What happens in Pagila: prices and casts change, films come and go, tables are emptied."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sandbox.databases.draft import Draft, Move, Weighted, chosen, one_of, whole
from sandbox.databases.moves import Habits, moves_of
from sandbox.databases.pagila import rows, words
from sandbox.databases.tables import Database, Row, Table

_FIRST_CAST = 4
_KEPT = 0.5


def _new_film(draft: Draft) -> Row:
    return rows.film(draft.random, draft.contents.next_number("film", "film_id"))


def _edited_film(draft: Draft, _row: Row) -> Row:
    """Mostly without the description, which the log then leaves out."""
    random = draft.random
    edits: tuple[tuple[float, Row], ...] = (
        (4, {"rental_rate": Decimal(one_of(random, words.RATES))}),
        (3, {"replacement_cost": rows.replacement_cost(random)}),
        (2, {"rating": one_of(random, (*words.RATINGS, None))}),
        (2, {"special_features": rows.features(random)}),
        (1, {"release_year": whole(random, 1925, 2024), "length": None}),
        (2, {"description": rows.description(random)}),
    )
    return chosen(random, edits)


def _new_actor(draft: Draft) -> Row:
    return rows.actor(draft.random, draft.contents.next_number("actor", "actor_id"))


def _edited_actor(draft: Draft, _row: Row) -> Row:
    return {"last_name": one_of(draft.random, words.LAST_NAMES)}


def _new_category(draft: Draft) -> Row:
    number = draft.contents.next_number("category", "category_id")
    return {"category_id": number, "name": f"Genre {number}"}


def _edited_category(draft: Draft, _row: Row) -> Row:
    return {"name": one_of(draft.random, words.CATEGORIES)}


def _new_language(draft: Draft) -> Row:
    number = draft.contents.next_number("language", "language_id")
    return rows.language(number, f"Dialect {number}")


def _edited_language(draft: Draft, row: Row) -> Row:
    name = one_of(draft.random, words.LANGUAGES)
    return {"name": rows.language(row["language_id"], name)["name"]}


def _new_address(draft: Draft) -> Row:
    return rows.address(draft.random, draft.contents.next_number("address", "address_id"))


def _edited_address(draft: Draft, _row: Row) -> Row:
    random = draft.random
    edits: tuple[tuple[float, Row], ...] = (
        (2, {"phone": rows.phone(random)}),
        (2, {"postal_code": rows.postal_code(random)}),
        (1, {"address2": None}),
        (1, {"district": one_of(random, words.DISTRICTS), "city_id": 1}),
    )
    return chosen(random, edits)


def _numbered(
    table: str, fresh: Callable[[Draft], Row], edited: Callable[[Draft, Row], Row]
) -> Habits:
    """Of a table whose key is a number."""
    column = f"{table}_id"

    def moved(draft: Draft, _row: Row) -> Row:
        return {column: draft.contents.next_number(table, column)}

    return Habits(table, fresh, edited, moved)


def _linked(table: str, other: str) -> Habits:
    """Of a table between films and another one, whose rows are keys alone.

    What an edit changes is the time of the last update; a key changes in one of its columns.
    """
    column = f"{other}_id"

    def fresh(draft: Draft) -> Row | None:
        film, one = draft.draw("film"), draft.draw(other)
        return None if film is None or one is None else unused(draft, film, one)

    def moved(draft: Draft, row: Row) -> Row | None:
        one = draft.draw(other)
        key = None if one is None else unused(draft, row, one)
        return None if key is None else {column: key[column]}

    def unused(draft: Draft, film: Row, one: Row) -> Row | None:
        both = {**film, column: one[column]}
        key = {name: both[name] for name in PAGILA.table(table).key}
        return None if draft.contents.has(table, *key.values()) else key

    return Habits(table, fresh, lambda _draft, row: dict(row), moved)


def _release(draft: Draft) -> None:
    """A film comes with its cast and its category."""
    film = _new_film(draft)
    draft.insert("film", film)
    for _ in range(whole(draft.random, 1, _FIRST_CAST)):
        actor = draft.draw("actor")
        if actor is not None:
            key = {"actor_id": actor["actor_id"], "film_id": film["film_id"]}
            if not draft.contents.has("film_actor", *key.values()):
                draft.insert("film_actor", key)
    category = draft.draw("category")
    if category is not None:
        key = {"film_id": film["film_id"], "category_id": category["category_id"]}
        draft.insert("film_category", key)


def _empty(draft: Draft) -> None:
    """A table is emptied at once; mostly some of its rows come again right away."""
    table = one_of(draft.random, PAGILA.tables).name
    before = list(draft.contents.rows(table))
    draft.truncate(table)
    if draft.random() < _KEPT:
        for row in before[: whole(draft.random, 1, 20)]:
            draft.insert(table, row)


MOVES: Weighted[Move] = (
    *moves_of(_numbered("film", _new_film, _edited_film), 36),
    *moves_of(_numbered("address", _new_address, _edited_address), 20),
    *moves_of(_numbered("actor", _new_actor, _edited_actor), 12),
    *moves_of(_linked("film_actor", "actor"), 12),
    *moves_of(_linked("film_category", "category"), 8),
    *moves_of(_numbered("category", _new_category, _edited_category), 4),
    *moves_of(_numbered("language", _new_language, _edited_language), 4),
    (4, _release),
)

PAGILA = Database(
    name="pagila",
    engine="postgres",
    connector="pagila",
    command="pagila-tables",
    tables=(
        Table(
            "film",
            ("film_id",),
            (
                "film_id", "title", "description", "release_year", "language_id",
                "original_language_id", "rental_duration", "rental_rate", "length",
                "replacement_cost", "rating", "special_features",
            ),
        ),
        Table("actor", ("actor_id",), ("actor_id", "first_name", "last_name")),
        Table("category", ("category_id",), ("category_id", "name")),
        Table("language", ("language_id",), ("language_id", "name")),
        Table("film_actor", ("actor_id", "film_id"), ("actor_id", "film_id")),
        Table("film_category", ("film_id", "category_id"), ("film_id", "category_id")),
        Table(
            "address",
            ("address_id",),
            (
                "address_id", "address", "address2", "district", "city_id",
                "postal_code", "phone",
            ),
        ),
    ),
    size=1_000,
    rows=rows.rows,
    moves=MOVES,
    truncates=((1, _empty),),
    help="Pagila's films, who plays in them, and addresses, in PostgreSQL.",
)  # fmt: skip
