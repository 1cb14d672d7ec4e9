"""Bronze rows made by Spark from numbers alone: fast, and the same each time.

Record ``n`` of a stream arrives ``n`` times 0.864 seconds after the history's start, which is
100,000 records a day. All histories end at the same moment, however long they are, so that
what comes after them falls on the same day.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.increments.worker import rows_of_table
from sandbox.settings import PROJECT
from sandbox.streams.smoothies.catalogue import catalogue

SALES = "bronze.pagila__sales"
PURCHASES = "bronze.smoothies__purchases"
PRODUCTS = "bronze.smoothies__products"
INVENTORIES = "bronze.smoothies__inventories"
TOPICS = {
    SALES: "pagila.sales.avro",
    PURCHASES: "demo.purchases",
    PRODUCTS: "demo.products",
    INVENTORIES: "demo.inventories",
}
DAY_ROWS = 100_000
PARTITIONS = 4
# Early in a day, which then has room for what comes after the history.
HISTORY_ENDS_AT = datetime(2026, 3, 1, 4, 48, tzinfo=UTC)
MICROS_PER_ROW = 86_400_000_000 // DAY_ROWS
MAX_LATE_SECONDS = 1800
# One record of so many, after the history: late, sent again, a restocking.
LATE_OF = 20
AGAIN_OF = 100
RESTOCKING_OF = 100

Columns = dict[str, Column]


@dataclass(frozen=True)
class Numbers:
    """Records of a stream, by number.

    Attributes:
        history: Records of the whole history; later numbers came after it.
        increment: Records of one increment; a record that is sent again was first sent so
            many records ago, and some.
        first: The first record.
        end: The first record that is not among them.
        every: One record arrives in the time of so many sales.
    """

    history: int
    increment: int
    first: int
    end: int
    every: int = 1

    def of_each(self, count: int) -> Numbers:
        """Those of a stream that has one record to so many of these."""
        return Numbers(
            history=self.history // count,
            increment=self.increment // count,
            first=self.first // count,
            end=self.end // count,
            every=self.every * count,
        )


def sales(numbers: Numbers) -> Columns:
    """Columns of sales by record number ``n``."""
    sale = _sent_first(numbers)
    countries = F.array(*(F.lit(country) for country in _countries()))
    return {
        "payment_id": sale + 1,
        "customer_id": sale % 599 + 1,
        "amount": F.lit("0.99").cast("decimal(10,2)") + sale % 11,
        "payment_date": _event_at(numbers, sale),
        "city": F.concat(F.lit("City "), sale % 997),
        "district": F.concat(F.lit("District "), sale % 89),
        "country": F.element_at(countries, (sale % len(_countries()) + 1).cast("int")),
        "_key": sale % 599 + 1,
    }


def purchases(numbers: Numbers) -> Columns:
    """Columns of purchase lines by record number ``n``; all totals follow from their parts."""
    line = _sent_first(numbers)
    transaction = F.concat(F.lit("T"), F.floor(line / 2))
    price, discount = _price(line), _money(F.when(line % 4 == 0, "0.10").otherwise("0"))
    supplement = _money(F.when(line % 7 == 0, "1.99").otherwise("0"))
    quantity = line % 3 + 1
    return {
        "transaction_time": _event_at(numbers, line),
        "transaction_id": transaction,
        "product_id": _of_catalogue([p.product_id for p in catalogue()], line),
        "price": price,
        "quantity": quantity,
        "is_member": line % 4 == 0,
        "member_discount": discount,
        "add_supplements": line % 7 == 0,
        "supplement_price": supplement,
        "total_purchase": F.round(quantity * (price + supplement) * (1 - discount), 2),
        "_key": transaction,
    }


def inventories(numbers: Numbers) -> Columns:
    """Columns of restockings by record number ``n``."""
    product_id = _of_catalogue([p.product_id for p in catalogue()], F.col("n"))
    return {
        "event_time": _arrival_at(numbers, F.col("n")),
        "product_id": product_id,
        "existing_level": F.col("n") % 20,
        "stock_quantity": F.lit(50),
        "new_level": F.col("n") % 20 + 50,
        "_key": product_id,
    }


def products(numbers: Numbers) -> Columns:
    """Columns of the catalogue, listed once when the history begins."""
    begins_at = _arrival_at(numbers, F.lit(0))
    columns = {
        field: _of_catalogue([str(getattr(p, field)) for p in catalogue()], F.col("n"))
        for field in (
            *("product_id", "category", "item", "size", "cogs", "price"),
            *("inventory_level", "contains_fruit", "contains_veggies"),
            *("contains_nuts", "contains_caffeine", "propensity_to_buy"),
        )
    }
    return {"event_time": begins_at, **columns, "_key": columns["product_id"]}


def bronze_rows(
    spark: SparkSession, table: str, numbers: Numbers, columns: Columns, commit_id: int
) -> DataFrame:
    """Rows of one commit, as the table has them.

    Args:
        spark: A session on the lake.
        table: A bronze table.
        numbers: Which records.
        columns: The value's columns, and the key, by record number ``n``.
        commit_id: The commit's number.
    """
    number = F.col("n")
    known = {
        **columns,
        "_kafka_key": columns["_key"].cast("string").cast("binary"),
        "_kafka_topic": F.lit(TOPICS[table]),
        "_kafka_topic_id": F.lit(f"bench-{TOPICS[table]}"),
        "_kafka_partition": number % PARTITIONS,
        "_kafka_offset": F.floor(number / PARTITIONS),
        "_kafka_timestamp": _arrival_at(numbers, number),
        "_schema_id": F.lit(1),
        "_is_tombstone": F.lit(False),
        # One moment for all of a commit, as ingest has it.
        "_ingested_at": _arrival_at(numbers, F.lit(numbers.end)),
        "_commit_id": F.lit(commit_id),
    }
    made = spark.range(numbers.first, numbers.end, 1, PARTITIONS).withColumnRenamed("id", "n")
    return rows_of_table(made, table, known)


def _arrival_at(numbers: Numbers, number: Column, earlier_by: Column | None = None) -> Column:
    """When Kafka got a record, or some seconds earlier."""
    ends_at = F.unix_micros(F.lit(HISTORY_ENDS_AT))
    records_later = number.cast("bigint") - numbers.history
    micros = ends_at + records_later * (MICROS_PER_ROW * numbers.every)
    if earlier_by is not None:
        micros = micros - earlier_by * 1_000_000
    return F.timestamp_micros(micros)


def _event_at(numbers: Numbers, number: Column) -> Column:
    """When it happened: some records after the history were on their way for a while."""
    is_late = (number >= numbers.history) & (number % LATE_OF == 3)
    late_seconds = F.when(is_late, number * 7919 % MAX_LATE_SECONDS + 1).otherwise(0)
    return _arrival_at(numbers, number, earlier_by=late_seconds)


def _sent_first(numbers: Numbers) -> Column:
    """The number under which record ``n`` was sent first: mostly its own.

    The distance keeps the Kafka partition, and leads to no record that is itself a repeat.
    """
    number = F.col("n")
    is_again = (number >= numbers.history) & (number % AGAIN_OF == 7)
    return F.when(is_again, number - numbers.increment - 40).otherwise(number)


def _price(number: Column) -> Column:
    return _money(_of_catalogue([str(p.price) for p in catalogue()], number))


def _money(text: Column) -> Column:
    return text.cast("decimal(10,2)")


def _of_catalogue(values: list[str], number: Column) -> Column:
    listed = F.array(*(F.lit(value) for value in values))
    return F.element_at(listed, (number % len(values) + 1).cast("int"))


def _countries() -> list[str]:
    with (PROJECT / "seeds/sales_regions.csv").open(newline="") as file:
        return [row["country"] for row in csv.DictReader(file)]
