"""Artists and works as a museum has them: what is unknown is null, empty, 0 or a word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from sandbox.databases.moma import words
from sandbox.databases.tables import Row
from sandbox.databases.transactions import chosen, one_of, whole
from sandbox.streams.generator import Chance

WORKS_PER_ARTIST = 2
_OPENED = date(1929, 11, 7)
_LAST = date(2024, 12, 31)
_PEOPLE = tuple((people.weight, people) for people in words.PEOPLE)
_CRAFTS = tuple((craft.weight, craft) for craft in words.CRAFTS)
# An eighth of an inch in centimetres; and that of the inch of land surveyors, from which some
# program converted now and then: then a length has ten decimals.
_EIGHTH, _SURVEY_EIGHTH = Decimal("0.3175"), Decimal("0.31750063500127")
_SURVEYED = 20
_FINEST = Decimal("1e-10")
_SIZES = {
    "h": "height_cm",
    "w": "width_cm",
    "d": "depth_cm",
    "D": "diameter_cm",
    "c": "circumference_cm",
    "l": "length_cm",
}


def rows(seed: int, artists: int) -> Iterator[tuple[str, Row]]:
    """The artists, and twice as many works; some of nobody who is among the artists."""
    random = Random(seed).random
    for artist_id in range(1, artists + 1):
        yield "artists", artist(random, artist_id)
    for artwork_id in range(1, WORKS_PER_ARTIST * artists + 1):
        of = whole(random, 1, artists + artists // 100)
        yield "artworks", artwork(random, artwork_id, of)


def artist(random: Chance, artist_id: int) -> Row:
    """An artist, or a firm."""
    people = chosen(random, _PEOPLE)
    is_woman, is_firm = random() < 0.3, random() < 0.04
    first = one_of(random, people.women if is_woman else people.men)
    family = one_of(random, people.families)
    name = f"{first} {family}"
    if random() < 0.12:
        name = f"{first} {chr(65 + whole(random, 0, 25))}. {family}"
    if is_firm:
        name = f"{family} {one_of(random, words.FIRMS)}"
    born, died = _years(random)
    return {
        "artist_id": artist_id,
        "name": name,
        "nationality": nationality(random, people),
        "gender": None if is_firm else gender(random, is_woman=is_woman),
        "birth_year": born,
        "death_year": died,
    }


def nationality(random: Chance, people: words.People) -> str | None:
    """One of a people's, or what stands there for none."""
    if random() < 0.12:
        return one_of(random, words.NO_NATIONALITY)
    return one_of(random, people.nationalities)


def gender(random: Chance, *, is_woman: bool) -> str | None:
    """As typed: mostly with a capital."""
    at = random()
    if at < 0.1:
        return one_of(random, words.NO_GENDER)
    if at < 0.11:
        return "Non-Binary"
    word = "Female" if is_woman else "Male"
    return word.lower() if at < 0.14 else word


def _years(random: Chance) -> tuple[int | None, int | None]:
    at, born = random(), whole(random, 1840, 1992)
    if at < 0.1:
        return 0, 0
    if at < 0.15:
        return None, None
    died = born + whole(random, 27, 96)
    # 0 and null both stand for "alive" or "nobody knows".
    return born, died if died < _LAST.year else one_of(random, (0, None))


def artwork(random: Chance, artwork_id: int, artist_id: int) -> Row:
    """A work of an artist; which sizes are known goes by its classification."""
    craft = chosen(random, _CRAFTS)
    year = whole(random, 1860, 2023)
    acquired = _acquired(random, year)
    number = f"{whole(random, 1, 999)}.{(acquired or _OPENED).year}"
    if random() < 0.2:
        number += f".{chr(97 + whole(random, 0, 25))}"
    row: Row = {
        "artwork_id": artwork_id,
        "title": title(random),
        "artist_id": None if random() < 0.01 else artist_id,
        "date_text": date_text(random, year),
        "medium": one_of(random, craft.media),
        "dimensions": None,
        "acquisition_date": acquired,
        "credit": credit(random),
        "is_catalogued": None if random() < 0.02 else random() < 0.65,
        "department": one_of(random, craft.departments),
        "classification": craft.classification,
        "object_number": number,
        **dict.fromkeys(_SIZES.values()),
        "weight_kg": None,
        "duration_seconds": None,
    }
    return {**row, **sizes(random, craft)}


def sizes(random: Chance, craft: words.Craft) -> Row:
    """What was measured, and the same as somebody wrote it down."""
    known = [size for size in craft.sizes if random() < (0.95 if size in "hw" else 0.4)]
    row: Row = {}
    for size in known:
        if size in _SIZES:
            # Inches, as centimetres: these are the fractions that the data are full of.
            eighths = whole(random, 8, 640)
            if eighths % _SURVEYED:
                row[_SIZES[size]] = eighths * _EIGHTH
            else:
                row[_SIZES[size]] = (eighths * _SURVEY_EIGHTH).quantize(_FINEST)
        elif size == "k":
            row["weight_kg"] = Decimal(whole(random, 1_000, 9_000_000)).scaleb(-4)
        else:
            row["duration_seconds"] = Decimal(whole(random, 300, 720_000)).scaleb(-2)
    row["dimensions"] = _dimensions(row)
    return row


def title(random: Chance) -> str | None:
    """A title, here and there with blanks around it."""
    at = random()
    if at < 0.02:
        return one_of(random, (None, "", "NULL"))
    text = one_of(random, words.TITLES).format(
        one_of(random, words.SUBJECTS), n=whole(random, 1, 40)
    )
    return f" {text}  " if at > 0.99 else text


def date_text(random: Chance, year: int) -> str | None:
    """When a work was made, in the words of whoever entered it."""
    kinds = (
        (60, str(year)),
        (14, f"c. {year}"),
        (8, f"{year}–{(year + whole(random, 1, 9)) % 100:02}"),
        (5, f"({year}, printed {year + whole(random, 5, 40)})"),
        (4, f"before {year}"),
        (3, "n.d."),
        (2, "Unknown"),
        (2, ""),
        (2, None),
    )
    return chosen(random, kinds)


def credit(random: Chance) -> str | None:
    """To whom the museum owes a work."""
    if random() < 0.03:
        return None
    people = chosen(random, _PEOPLE)
    return one_of(random, words.CREDITS).format(one_of(random, people.families))


def _acquired(random: Chance, year: int) -> date | None:
    if random() < 0.06:
        return None
    earliest = max(_OPENED, date(year, 1, 1))
    return earliest + timedelta(whole(random, 0, (_LAST - earliest).days))


def _dimensions(measured: Row) -> str | None:
    known = [measured[name] for name in _SIZES.values() if name in measured]
    if not known:
        return None
    inches = " x ".join(_inches(size) for size in known)
    return f'{inches}" ({" x ".join(f"{size:.1f}" for size in known)} cm)'


def _inches(centimetres: Decimal) -> str:
    eighths = round(centimetres / _EIGHTH)
    whole_inches, rest = divmod(eighths, 8)
    if not rest:
        return str(whole_inches)
    top, bottom = rest, 8
    while top % 2 == 0:
        top, bottom = top // 2, bottom // 2
    return f"{whole_inches} {top}/{bottom}"
