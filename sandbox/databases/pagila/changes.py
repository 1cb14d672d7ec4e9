"""What happens in Pagila: prices and casts change, films come and go, tables are emptied."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sandbox.databases.operations import RowRules, operations_on
from sandbox.databases.pagila import rows, words
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.transactions import Operation, Txn, Weighted, chosen, one_of, whole

_FIRST_CAST = 4
_KEPT = 0.5


def _new_film(txn: Txn) -> Row:
    return rows.film(txn.random, txn.state.next_number("film", "film_id"))


def _edited_film(txn: Txn, _row: Row) -> Row:
    """Mostly without the description, which the log then leaves out."""
    random = txn.random
    edits: tuple[tuple[float, Row], ...] = (
        (4, {"rental_rate": Decimal(one_of(random, words.RATES))}),
        (3, {"replacement_cost": rows.replacement_cost(random)}),
        (2, {"rating": one_of(random, (*words.RATINGS, None))}),
        (2, {"special_features": rows.features(random)}),
        (1, {"release_year": whole(random, 1925, 2024), "length": None}),
        (2, {"description": rows.description(random)}),
    )
    return chosen(random, edits)


def _new_actor(txn: Txn) -> Row:
    return rows.actor(txn.random, txn.state.next_number("actor", "actor_id"))


def _edited_actor(txn: Txn, _row: Row) -> Row:
    return {"last_name": one_of(txn.random, words.LAST_NAMES)}


def _new_category(txn: Txn) -> Row:
    number = txn.state.next_number("category", "category_id")
    return {"category_id": number, "name": f"Genre {number}"}


def _edited_category(txn: Txn, _row: Row) -> Row:
    return {"name": one_of(txn.random, words.CATEGORIES)}


def _new_language(txn: Txn) -> Row:
    number = txn.state.next_number("language", "language_id")
    return rows.language(number, f"Dialect {number}")


def _edited_language(txn: Txn, row: Row) -> Row:
    name = one_of(txn.random, words.LANGUAGES)
    return {"name": rows.language(row["language_id"], name)["name"]}


def _new_address(txn: Txn) -> Row:
    return rows.address(txn.random, txn.state.next_number("address", "address_id"))


def _edited_address(txn: Txn, _row: Row) -> Row:
    random = txn.random
    edits: tuple[tuple[float, Row], ...] = (
        (2, {"phone": rows.phone(random)}),
        (2, {"postal_code": rows.postal_code(random)}),
        (1, {"address2": None}),
        (1, {"district": one_of(random, words.DISTRICTS), "city_id": 1}),
    )
    return chosen(random, edits)


def _numbered(
    table: str,
    fresh: Callable[[Txn], Row],
    edited: Callable[[Txn, Row], Row],
) -> RowRules:
    """Of a table whose key is a number."""
    column = f"{table}_id"

    def moved(txn: Txn, _row: Row) -> Row:
        return {column: txn.state.next_number(table, column)}

    return RowRules(table, fresh, edited, moved)


def _linked(table: str, other: str) -> RowRules:
    """Of a table between films and another one, whose rows are keys alone.

    What an edit changes is the time of the last update; a key changes in one of its columns.
    """
    column = f"{other}_id"

    def fresh(txn: Txn) -> Row | None:
        film, one = txn.draw("film"), txn.draw(other)
        return None if film is None or one is None else unused(txn, film, one)

    def moved(txn: Txn, row: Row) -> Row | None:
        one = txn.draw(other)
        key = None if one is None else unused(txn, row, one)
        return None if key is None else {column: key[column]}

    def unused(txn: Txn, film: Row, one: Row) -> Row | None:
        both = {**film, column: one[column]}
        key = {name: both[name] for name in PAGILA.table(table).key}
        return None if txn.state.has(table, *key.values()) else key

    return RowRules(table, fresh, lambda _txn, row: dict(row), moved)


def _release(txn: Txn) -> None:
    """A film comes with its cast and its category."""
    film = _new_film(txn)
    txn.insert("film", film)
    for _ in range(whole(txn.random, 1, _FIRST_CAST)):
        actor = txn.draw("actor")
        if actor is not None:
            key = {"actor_id": actor["actor_id"], "film_id": film["film_id"]}
            if not txn.state.has("film_actor", *key.values()):
                txn.insert("film_actor", key)
    category = txn.draw("category")
    if category is not None:
        key = {"film_id": film["film_id"], "category_id": category["category_id"]}
        txn.insert("film_category", key)


def _empty(txn: Txn) -> None:
    """A table is emptied at once; mostly some of its rows come again right away."""
    table = one_of(txn.random, PAGILA.tables).name
    before = list(txn.state.rows(table))
    txn.truncate(table)
    if txn.random() < _KEPT:
        for row in before[: whole(txn.random, 1, 20)]:
            txn.insert(table, row)


OPERATIONS: Weighted[Operation] = (
    *operations_on(_numbered("film", _new_film, _edited_film), 36),
    *operations_on(_numbered("address", _new_address, _edited_address), 20),
    *operations_on(_numbered("actor", _new_actor, _edited_actor), 12),
    *operations_on(_linked("film_actor", "actor"), 12),
    *operations_on(_linked("film_category", "category"), 8),
    *operations_on(_numbered("category", _new_category, _edited_category), 4),
    *operations_on(_numbered("language", _new_language, _edited_language), 4),
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
    operations=OPERATIONS,
    truncates=((1, _empty),),
    help="Pagila's films, who plays in them, and addresses, in PostgreSQL.",
)  # fmt: skip
