"""Records of both domains for trials of increments, in rounds, the same in every run.

Three ordinary days, and what increments get wrong: rows that are late, sent again, moved
to another day or partition, gone; a day that loses its only row; products that come after
their purchases, change backwards in time, end; clocks that ran backwards; times that are
missing or that no calendar knows.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

from tests.python.world.kafka import Kafka, Row

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
LONELY_DAY = "2025-12-25"
LONELY_SALE, LONELY_PURCHASE = 9001, "lonely"
COUNTRIES = ["Japan", "Germany", "Brazil", "Nowhere", None]
PRODUCTS = {
    "CS01": ("Classic Smoothies", "4.99", "1.50"),
    "CS02": ("Classic Smoothies", "4.99", "1.50"),
    "SF01": ("Superfoods Smoothies", "5.99", "2.10"),
    "IS01": ("Indulgent Smoothies", "5.49", "2.20"),
}
LATE_PRODUCT = "SC01"
# Every third day of two blocks, and the days between the blocks: more stretches than an
# increment separates, which windows of the day before join to two.
SCATTERED_DAYS = [
    (date(2024, 1, 1) + timedelta(days=start + 3 * step)).isoformat()
    for start in (0, 230)
    for step in range(70)
]
DAYS_BETWEEN = [(date(2024, 1, 1) + timedelta(days=210 + step)).isoformat() for step in range(18)]
UNKNOWN_PRODUCT = "XX99"


class Records:
    """Makes records; ``random`` decides what a trial does not say."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sales = Kafka("pagila.sales.avro")
        self.products = Kafka("demo.products")
        self.purchases = Kafka("demo.purchases")
        self.inventories = Kafka("demo.inventories")

    def moment(self, days: list[str]) -> str:
        """Some time of some of the days, near midnight more often than not."""
        day = self.random.choice(days)
        hour = self.random.choice([0, 0, 23, 23, 12])
        minute = self.random.choice([0, 4, 5, 9, 55, 59])
        micros = self.random.randrange(60_000_000)
        return f"{day} {hour:02d}:{minute:02d}:{micros // 10**6:02d}.{micros % 10**6:06d}"

    def sale(self, payment_id: int, paid_at: str | None, partition: int = 0, **other: Any) -> Row:
        return self.sales.record(
            partition,
            other.pop("sent_at", paid_at),
            **{
                "payment_id": payment_id,
                "customer_id": payment_id % 7,
                "amount": f"{self.random.randrange(20)}.{self.random.randrange(100):02d}",
                "payment_date": paid_at,
                "city": self.random.choice(["Lyon", None]),
                "country": self.random.choice(COUNTRIES),
                "_schema_id": 1,
                **other,
            },
        )

    def product(self, product_id: str, listed_at: str, partition: int = 0, **other: Any) -> Row:
        category, price, cost = PRODUCTS.get(product_id, ("Other", "6.49", "2.70"))
        return self.products.record(
            partition,
            other.pop("sent_at", listed_at),
            **{
                "event_time": listed_at,
                "product_id": product_id,
                "category": category,
                "item": f"Item {product_id}",
                "size": "24 oz.",
                "cogs": cost,
                "price": price,
                "inventory_level": 75,
                "contains_fruit": True,
                "contains_veggies": False,
                "contains_nuts": False,
                "contains_caffeine": False,
                "propensity_to_buy": 3,
                "_key": product_id,
                "_schema_id": 2,
                **other,
            },
        )

    def withdrawal(self, product_id: str, sent_at: str) -> Row:
        """A tombstone of a product."""
        return self.products.record(
            0, sent_at, _key=product_id, _is_tombstone=True, _schema_id=None
        )

    def purchase(
        self, product_id: str, purchased_at: str | None, partition: int = 0, **other: Any
    ) -> Row:
        quantity = self.random.choice([1, 1, 2, 3])
        price = Decimal("4.99")
        supplement = self.random.choice([Decimal("0.00"), Decimal("1.99")])
        discount = self.random.choice([Decimal("0.00"), Decimal("0.10")])
        total = (quantity * (price + supplement) * (1 - discount)).quantize(
            Decimal("0.01"), ROUND_HALF_UP
        )
        wrong = self.random.random() < 0.1
        return self.purchases.record(
            partition,
            other.pop("sent_at", purchased_at),
            **{
                "transaction_time": purchased_at,
                "transaction_id": str(self.random.randrange(10**6)),
                "product_id": product_id,
                "price": str(price),
                "quantity": quantity,
                "is_member": discount > 0,
                "member_discount": str(discount),
                "add_supplements": supplement > 0,
                "supplement_price": str(supplement),
                "total_purchase": str(total + 1 if wrong else total),
                "_schema_id": 3,
                **other,
            },
        )

    def movement(self, product_id: str, moved_at: str, partition: int = 0) -> Row:
        level = self.random.randrange(11)
        return self.inventories.record(
            partition,
            moved_at,
            event_time=moved_at,
            product_id=product_id,
            existing_level=level,
            stock_quantity=15,
            new_level=level + 15,
            _key=product_id,
            _schema_id=4,
        )

    def one_of_each(self, days: list[str], first_id: int) -> dict[str, list[Row]]:
        """A sale and a purchase on each of the days, by bronze table."""
        return {
            "bronze.pagila__sales": [
                self.sale(payment_id, f"{day} 12:00:00")
                for payment_id, day in enumerate(days, first_id)
            ],
            "bronze.smoothies__purchases": [
                self.purchase("CS01", f"{day} 12:00:00") for day in days
            ],
        }

    def some(self, count: int, days: list[str], newest: int) -> dict[str, list[Row]]:
        """A mixed batch of both domains, by bronze table.

        Args:
            count: Sales, and as many purchases.
            days: When they happened.
            newest: Highest payment id; some are of payments known before.
        """
        chance = self.random
        known = [*PRODUCTS, LATE_PRODUCT, UNKNOWN_PRODUCT]
        sales = []
        for _ in range(count):
            if chance.random() < 0.3:
                self.sales.topic_id = "second" if chance.random() < 0.2 else "first"
            sales.append(
                self.sale(
                    chance.randrange(1, newest),
                    self.moment(days),
                    chance.choice([0, 0, 0, 1, 2]),
                    # Clocks that are ahead and behind.
                    sent_at=self.moment(["2026-01-01", "2026-01-05"]),
                )
            )
        self.sales.topic_id = "first"
        return {
            "bronze.pagila__sales": sales,
            "bronze.smoothies__purchases": [
                self.purchase(chance.choice(known), self.moment(days), chance.randrange(3))
                for _ in range(count)
            ],
            "bronze.smoothies__inventories": [
                self.movement(chance.choice(known), self.moment(days))
                for _ in range(max(1, count // 4))
            ],
        }


def catalogue(records: Records, listed_at: str) -> list[Row]:
    return [records.product(product_id, listed_at) for product_id in PRODUCTS]
