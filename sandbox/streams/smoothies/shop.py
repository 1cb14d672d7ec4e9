"""A run of the shops: the catalogue, then purchases, and stock refilled as they empty it.

What the shops know is the truth: stock falls when units are sold, whether the record of
the purchase arrives in time, late, broken or with a wrong total. So a purchase's time,
product and quantity always explain the stock, unless its record cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from sandbox.streams import STREAMS, avro_bytes
from sandbox.streams.faults import FAULTS
from sandbox.streams.generator import Generator, SchemaIds
from sandbox.streams.smoothies.catalogue import Product, catalogue, cents, choices
from sandbox.streams.smoothies.purchases import (
    DISCOUNT_PERCENT,
    LARGEST_TRANSACTION,
    LINES,
    MEMBER,
    QUANTITIES,
    SUPPLEMENT_CENTS,
    supplements,
    total_cents,
    transaction_id,
)
from sandbox.streams.timeline import (
    LATE,
    LEAST_DELAY_MILLIS,
    ON_TIME,
    WRONG,
    Plan,
    Record,
    by_arrival,
    kinds,
    late_arrival,
    prompt_arrival,
)

PRODUCTS = STREAMS["smoothies.products"]
PURCHASES = STREAMS["smoothies.purchases"]
INVENTORIES = STREAMS["smoothies.inventories"]

LOWEST_LEVEL = 10
"""At this level or below a product is restocked."""
RESTOCKED = 15
"""By so many units."""

_FURTHEST_OFF_CENTS = 400
_Random = Callable[[], float]


def smoothies(plan: Plan, schema_ids: SchemaIds) -> Iterator[Record]:
    """The records of a run, in the order in which they are sent.

    The events of the plan are purchase lines; ``plan.first_number`` numbers the first
    transaction. The lines of a transaction share its time, its id and whether the buyer is
    a member; the last transaction may be cut short by the plan's count. Beside them go the
    27 products, first, as of the plan's start, and a restocking whenever a line leaves a
    product at ``LOWEST_LEVEL`` or below, with that line's time. Stock starts as the
    catalogue says, in each run. The same plan gives the same bytes.
    """
    yield from _products(plan, schema_ids[PRODUCTS.name])
    yield from by_arrival(_trade(plan, schema_ids[PURCHASES.name], schema_ids[INVENTORIES.name]))


def _products(plan: Plan, schema_ids: tuple[int, int]) -> Iterator[Record]:
    key_frame, value_frame = (avro_bytes.frame(number) for number in schema_ids)
    for product in catalogue():
        product_id = avro_bytes.string(product.product_id)
        value = b"".join(
            (
                value_frame,
                avro_bytes.integer(plan.start * 1_000),
                product_id,
                avro_bytes.string(product.category),
                avro_bytes.string(product.item),
                avro_bytes.string(product.size),
                avro_bytes.decimal(cents(product.cogs)),
                avro_bytes.decimal(cents(product.price)),
                avro_bytes.integer(product.inventory_level),
                avro_bytes.boolean(product.contains_fruit),
                avro_bytes.boolean(product.contains_veggies),
                avro_bytes.boolean(product.contains_nuts),
                avro_bytes.boolean(product.contains_caffeine),
                avro_bytes.integer(product.propensity_to_buy),
            )
        )
        arrival = plan.start + LEAST_DELAY_MILLIS
        yield Record(key_frame + product_id, value, arrival, ON_TIME, PRODUCTS.topic)


def _trade(
    plan: Plan, purchase_ids: tuple[int, int], inventory_ids: tuple[int, int]
) -> Iterator[Record]:
    """Purchase lines in the order of their events, and the restockings among them."""
    random = Random(plan.seed).random
    key_frame, value_frame = (avro_bytes.frame(number) for number in purchase_ids)
    choice, sold = choices(), {who: _lines(is_member=who) for who in (True, False)}
    extras = [supplements(product.product_id) for product in catalogue()]
    stock = _Stock(inventory_ids)
    number, left, begin = plan.first_number, 0, plan.start * 1_000
    for place, kind in enumerate(kinds(plan, random)):
        if not left:
            left = LINES[int(random() * len(LINES))]
            micros = begin + int((place + random()) * plan.step * 1_000)
            millis = micros // 1_000
            transaction = transaction_id(number)
            key = key_frame + avro_bytes.string(transaction)
            head = (
                value_frame + avro_bytes.integer(micros) + avro_bytes.optional_string(transaction)
            )
            lines = sold[MEMBER[int(random() * len(MEMBER))]]
            number += 1
        left -= 1
        product = choice[int(random() * len(choice))]
        extra = extras[product]
        quantity = QUANTITIES[int(random() * len(QUANTITIES))]
        parts, total = lines[product, quantity, extra[int(random() * len(extra))]]
        arrival = prompt_arrival(random, millis)
        if kind == WRONG:
            value = head + parts + avro_bytes.decimal(total + _off(random))
        else:
            value = head + parts + avro_bytes.decimal(total)
        if kind == LATE:
            arrival = late_arrival(random, millis)
        elif kind in FAULTS:
            value = FAULTS[kind](random, value)
        yield Record(key, value, arrival, kind)
        restocked = stock.sell(product, quantity, micros)
        if restocked is not None:
            arrival = prompt_arrival(random, millis)
            yield Record(*restocked, arrival, ON_TIME, INVENTORIES.topic)


def _lines(*, is_member: bool) -> dict[tuple[int, int, bool], tuple[bytes, int]]:
    """A purchase line's bytes between id and total, and the total in cents.

    By product, quantity and supplements: there are few, so each is encoded once.
    """
    return {
        (position, quantity, add_supplements): (
            _parts(product, quantity, is_member=is_member, add_supplements=add_supplements),
            total_cents(
                cents(product.price), quantity, is_member=is_member, add_supplements=add_supplements
            ),
        )
        for position, product in enumerate(catalogue())
        for quantity in set(QUANTITIES)
        for add_supplements in (True, False)
    }


def _parts(product: Product, quantity: int, *, is_member: bool, add_supplements: bool) -> bytes:
    return b"".join(
        (
            avro_bytes.string(product.product_id),
            avro_bytes.decimal(cents(product.price)),
            avro_bytes.integer(quantity),
            avro_bytes.boolean(is_member),
            avro_bytes.decimal(DISCOUNT_PERCENT if is_member else 0),
            avro_bytes.boolean(add_supplements),
            avro_bytes.decimal(SUPPLEMENT_CENTS if add_supplements else 0),
        )
    )


def _off(random: _Random) -> int:
    """By how many cents a total is wrong: never none, never so many that nothing is left."""
    off = int(random() * 2 * _FURTHEST_OFF_CENTS) - _FURTHEST_OFF_CENTS
    return off if off < 0 else off + 1


class _Stock:
    """How much of each product there is."""

    def __init__(self, schema_ids: tuple[int, int]) -> None:
        self._key_frame, self._value_frame = (avro_bytes.frame(one) for one in schema_ids)
        self._levels = [product.inventory_level for product in catalogue()]
        self._names = [avro_bytes.string(product.product_id) for product in catalogue()]

    def sell(self, product: int, quantity: int, micros: int) -> tuple[bytes, bytes] | None:
        """Take units from a product; the restocking's key and value when it needs one."""
        level = self._levels[product] - quantity
        if level > LOWEST_LEVEL:
            self._levels[product] = level
            return None
        self._levels[product] = level + RESTOCKED
        name = self._names[product]
        value = b"".join(
            (
                self._value_frame,
                avro_bytes.integer(micros),
                name,
                avro_bytes.integer(level),
                avro_bytes.integer(RESTOCKED),
                avro_bytes.integer(level + RESTOCKED),
            )
        )
        return self._key_frame + name, value


GENERATOR = Generator(
    name=PURCHASES.name,
    make=smoothies,
    command="smoothies",
    also=(PRODUCTS.name, INVENTORIES.name),
    number="transaction number",
    largest=LARGEST_TRANSACTION,
    makes_wrong=True,
    help="""\
Products, purchases and stock of smoothie shops, to three topics.

demo.purchases, keyed by transaction, has the events: an event is a purchase
line, and a transaction has one to three of them. Beside them, and not counted
by --count, --rate and the shares, go all 27 products to demo.products, first,
and to demo.inventories each restocking of a product that a line left with 10
units or fewer. Stock starts over in each run, and falls with every line:
late, broken and wrong ones were sold all the same. A transaction_id is made
of the transaction's number alone.""",
)
