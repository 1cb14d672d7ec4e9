"""The products: what they are, what they cost, how much is in stock, how likely they sell.

``products.json`` has 27 of them in four categories, distinguished by the letters of the id:
CS classic, SF superfoods, SC supercharged, IS indulgent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Product:
    """A product of the catalogue; the fields are those of its records.

    Attributes:
        propensity_to_buy: Its place on the scale on which buyers choose; the places rise
            from product to product, by more the more often it is bought.
    """

    product_id: str
    category: str
    item: str
    size: str
    cogs: Decimal
    price: Decimal
    inventory_level: int
    contains_fruit: bool
    contains_veggies: bool
    contains_nuts: bool
    contains_caffeine: bool
    propensity_to_buy: int


@cache
def catalogue() -> tuple[Product, ...]:
    """All products, in the order of their places on the scale."""
    text = (files(__package__) / "products.json").read_text("utf-8")
    return tuple(Product(**written) for written in json.loads(text, parse_float=Decimal))


def choices() -> list[int]:
    """Which product each whole number of the scale chooses, from the first place to the last.

    Each is a position in the catalogue: the nearest product's, the lower one's of two equally
    near.
    """
    places = [product.propensity_to_buy for product in catalogue()]
    return [
        min(range(len(places)), key=lambda position: abs(places[position] - number))
        for number in range(places[0], places[-1] + 1)
    ]


def cents(amount: Decimal) -> int:
    """An amount in hundredths, exactly."""
    return int(amount.scaleb(2))
