"""What happens in Pagila: prices and casts change, films come and go, tables are emptied."""

from __future__ import annotations

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


def _moved_film(draft: Draft, _row: Row) -> Row:
    return {"film_id": draft.contents.next_number("film", "film_id")}


def _new_actor(draft: Draft) -> Row:
    return rows.actor(draft.random, draft.contents.next_number("actor", "actor_id"))


def _edited_actor(draft: Draft, _row: Row) -> Row:
    return {"last_name": one_of(draft.random, words.LAST_NAMES)}


def _moved_actor(draft: Draft, _row: Row) -> Row:
    return {"actor_id": draft.contents.next_number("actor", "actor_id")}


def _new_category(draft: Draft) -> Row:
    number = draft.contents.next_number("category", "category_id")
    return {"category_id": number, "name": f"Genre {number}"}


def _edited_category(draft: Draft, _row: Row) -> Row:
    return {"name": one_of(draft.random, words.CATEGORIES)}


def _moved_category(draft: Draft, _row: Row) -> Row:
    return {"category_id": draft.contents.next_number("category", "category_id")}


def _new_language(draft: Draft) -> Row:
    number = draft.contents.next_number("language", "language_id")
    return rows.language(number, f"Dialect {number}")


def _edited_language(draft: Draft, row: Row) -> Row:
    name = one_of(draft.random, words.LANGUAGES)
    return {"name": rows.language(row["language_id"], name)["name"]}


def _moved_language(draft: Draft, _row: Row) -> Row:
    return {"language_id": draft.contents.next_number("language", "language_id")}


def _new_role(draft: Draft) -> Row | None:
    film, actor = draft.draw("film"), draft.draw("actor")
    if film is None or actor is None:
        return None
    key = {"actor_id": actor["actor_id"], "film_id": film["film_id"]}
    return None if draft.contents.has("film_actor", *key.values()) else key


def _moved_role(draft: Draft, row: Row) -> Row | None:
    """Somebody else plays it: one of the two columns of the key changes."""
    actor = draft.draw("actor")
    if actor is None or draft.contents.has(
        "film_actor", actor["actor_id"], row["film_id"]
    ):
        return None
    return {"actor_id": actor["actor_id"]}


def _new_genre(draft: Draft) -> Row | None:
    film, category = draft.draw("film"), draft.draw("category")
    if film is None or category is None:
        return None
    key = {"film_id": film["film_id"], "category_id": category["category_id"]}
    return None if draft.contents.has("film_category", *key.values()) else key


def _moved_genre(draft: Draft, row: Row) -> Row | None:
    category = draft.draw("category")
    if category is None or draft.contents.has(
        "film_category", row["film_id"], category["category_id"]
    ):
        return None
    return {"category_id": category["category_id"]}


def _as_it_is(_draft: Draft, row: Row) -> Row:
    """These rows are keys alone: what an edit changes is the time of the last update."""
    return dict(row)


def _new_address(draft: Draft) -> Row:
    return rows.address(
        draft.random, draft.contents.next_number("address", "address_id")
    )


def _edited_address(draft: Draft, _row: Row) -> Row:
    random = draft.random
    edits: tuple[tuple[float, Row], ...] = (
        (2, {"phone": rows.phone(random)}),
        (2, {"postal_code": rows.postal_code(random)}),
        (1, {"address2": None}),
        (1, {"district": one_of(random, words.DISTRICTS), "city_id": 1}),
    )
    return chosen(random, edits)


def _moved_address(draft: Draft, _row: Row) -> Row:
    return {"address_id": draft.contents.next_number("address", "address_id")}


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
    *moves_of(Habits("film", _new_film, _edited_film, _moved_film), 36),
    *moves_of(Habits("address", _new_address, _edited_address, _moved_address), 20),
    *moves_of(Habits("actor", _new_actor, _edited_actor, _moved_actor), 12),
    *moves_of(Habits("film_actor", _new_role, _as_it_is, _moved_role), 12),
    *moves_of(Habits("film_category", _new_genre, _as_it_is, _moved_genre), 8),
    *moves_of(Habits("category", _new_category, _edited_category, _moved_category), 4),
    *moves_of(Habits("language", _new_language, _edited_language, _moved_language), 4),
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
