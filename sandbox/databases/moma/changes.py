"""What happens in a museum's data: people are looked up again, works are re-catalogued."""

from __future__ import annotations

from sandbox.databases.moma import rows, words
from sandbox.databases.operations import RowRules, operations_on
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.transactions import Operation, Txn, Weighted, chosen, one_of, whole

_MOST_WORKS = 5
_CRAFTS = tuple((craft.weight, craft) for craft in words.CRAFTS)


def _new_artist(txn: Txn) -> Row:
    return rows.artist(txn.random, txn.state.next_number("artists", "artist_id"))


def _edited_artist(txn: Txn, row: Row) -> Row:
    random = txn.random
    edits = (
        (5, {"nationality": one_of(random, words.MOVED_TO)}),
        (1, {"nationality": one_of(random, words.NO_NATIONALITY)}),
        (2, {"death_year": _death_year(txn, row)}),
        (1, {"gender": rows.gender(random, is_woman=random() < 0.5)}),
        (1, {"name": f"{row['name'].rstrip()} ", "birth_year": 0}),
    )
    return chosen(random, edits)


def _death_year(txn: Txn, row: Row) -> int | None:
    born = row["birth_year"]
    return born + whole(txn.random, 27, 96) if born else None


def _moved_artist(txn: Txn, _row: Row) -> Row:
    return {"artist_id": txn.state.next_number("artists", "artist_id")}


def _new_work(txn: Txn) -> Row:
    number = txn.state.next_number("artworks", "artwork_id")
    artist = txn.draw("artists")
    return rows.artwork(txn.random, number, artist["artist_id"] if artist else number)


def _edited_work(txn: Txn, row: Row) -> Row:
    random = txn.random
    craft = chosen(random, _CRAFTS)
    edits: tuple[tuple[float, Row], ...] = (
        (3, {"classification": craft.classification, "medium": None}),
        (3, {"title": rows.title(random), "credit": rows.credit(random)}),
        (2, rows.sizes(random, craft)),
        (1, {"is_catalogued": not row["is_catalogued"]}),
        (1, {"acquisition_date": None, "object_number": None}),
    )
    return chosen(random, edits)


def _moved_work(txn: Txn, _row: Row) -> Row:
    return {"artwork_id": txn.state.next_number("artworks", "artwork_id")}


def _renumber(txn: Txn) -> None:
    """An artist gets another number, and so do those of their works that we come across."""
    artist = txn.draw("artists")
    if artist is None:
        return
    key = _moved_artist(txn, artist)
    txn.update("artists", artist, key)
    for _ in range(_MOST_WORKS):
        work = txn.draw("artworks")
        if work is not None and work["artist_id"] != key["artist_id"]:
            txn.update("artworks", work, key)


OPERATIONS: Weighted[Operation] = (
    *operations_on(RowRules("artists", _new_artist, _edited_artist, _moved_artist), 40),
    *operations_on(RowRules("artworks", _new_work, _edited_work, _moved_work), 56),
    (4, _renumber),
)

MOMA = Database(
    name="moma",
    engine="postgres",
    connector="moma",
    command="moma",
    tables=(
        Table(
            "artists",
            ("artist_id",),
            (
                "artist_id", "name", "nationality", "gender", "birth_year", "death_year",
            ),
        ),
        Table(
            "artworks",
            ("artwork_id",),
            (
                "artwork_id", "title", "artist_id", "date_text", "medium", "dimensions",
                "acquisition_date", "credit", "is_catalogued", "department",
                "classification", "object_number", "diameter_cm", "circumference_cm",
                "height_cm", "length_cm", "width_cm", "depth_cm", "weight_kg",
                "duration_seconds",
            ),
        ),
    ),
    size=1_500,
    rows=rows.rows,
    operations=OPERATIONS,
    help="A museum's artists and works, in PostgreSQL.",
)  # fmt: skip
