"""The streams that the sandbox knows: their topics, their Avro schemas, their keys.

Each source has a folder here with its ``*.avsc`` and the generator of its events.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Stream:
    """One topic of Avro records in Confluent framing (keys and values).

    Attributes:
        name: ``<source>.<entity>``, as commands take it.
        topic: The Kafka topic.
        value_schema: Avro schema of the values, parsed from its ``.avsc``.
        key_schema: Avro schema of the keys.
        key_field: The value's field that is the key; a record where it is null has none.
        partitions: How many partitions `sandbox up` gives the topic.
    """

    name: str
    topic: str
    value_schema: dict[str, Any]
    key_schema: dict[str, Any]
    key_field: str
    partitions: int = 4

    @property
    def value_subject(self) -> str:
        return f"{self.topic}-value"

    @property
    def key_subject(self) -> str:
        return f"{self.topic}-key"


def _schema(source: str, name: str) -> dict[str, Any]:
    text = (files(__name__) / source / f"{name}.avsc").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


STREAMS: dict[str, Stream] = {
    stream.name: stream
    for stream in (
        Stream(
            name="pagila.sales",
            topic="pagila.sales.avro",
            value_schema=_schema("pagila", "sales-value"),
            key_schema=_schema("pagila", "sales-key"),
            key_field="customer_id",
        ),
        Stream(
            name="smoothies.products",
            topic="demo.products",
            value_schema=_schema("smoothies", "products-value"),
            key_schema=_schema("smoothies", "products-key"),
            key_field="product_id",
        ),
        Stream(
            name="smoothies.purchases",
            topic="demo.purchases",
            value_schema=_schema("smoothies", "purchases-value"),
            key_schema=_schema("smoothies", "purchases-key"),
            key_field="transaction_id",
        ),
        Stream(
            name="smoothies.inventories",
            topic="demo.inventories",
            value_schema=_schema("smoothies", "inventories-value"),
            key_schema=_schema("smoothies", "inventories-key"),
            key_field="product_id",
        ),
    )
}
