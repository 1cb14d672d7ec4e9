"""Schemas that change under a stream: what the table can hold comes in, the rest is kept aside.

Fails when a schema change loses a record, or stops the stream.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from pyspark.sql import Row

from tests.python.stack.conftest import Feed, proofs
from tests.python.stack.test_types import array, ingest_all, logical, record, table
from tests.python.world.avro import framed


def enum(*symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": "Status", "symbols": list(symbols)}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


FIRST = record(
    "Order",
    id="int",
    amount="float",
    price=decimal(6, 2),
    note="string",
    gone="string",
    status=enum("NEW", "PAID"),
    inner=record("Inner", x="int"),
    tags=array("int"),
    choice=["null", "int", "string"],
)
WIDER = record(
    "Order",
    id="long",
    amount="double",
    price=decimal(9, 2),
    note=["null", "string"],
    status=enum("PAID", "SENT", "NEW"),
    inner=record("Inner", y=["null", "string"], x="long"),
    tags=array("long"),
    choice=["null", "boolean", "string", "long"],
    added=["null", "string"],
)
RENAMED = record("Purchase", id="int", comment="string", when=logical("int", "date"))
TEXT_ID = record("Order", id="string")
OTHER_SCALE = record("Order", id="int", price=decimal(9, 3))


def register(feed: Feed, *schemas: Any) -> list[int]:
    """Register versions of the feed's subject, also those that are not compatible; their ids."""
    ids = []
    for schema in schemas:
        _allow_everything(feed)
        ids.append(feed.register(schema))
    return ids


def _allow_everything(feed: Feed) -> None:
    """Let the feed's own subject take any schema, where it is there already.

    By Apicurio's own API: a level NONE set by Confluent's leaves the global one to decide,
    which is that of all other tests, too.
    """
    api = feed.stack.home.registry_url.replace("ccompat/v7", "registry/v3")
    request = urllib.request.Request(
        f"{api}/groups/default/artifacts/{feed.topic}-value/rules",
        json.dumps({"ruleType": "COMPATIBILITY", "config": "NONE"}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as refused:
        # No such subject yet, or done before.
        if refused.code not in {404, 409}:
            raise


def reasons(feed: Feed) -> list[tuple[int, str, str]]:
    """(offset, error class, what is wrong) of the topic's records in quarantine."""
    aside = feed.services.spark.table("lake.bronze.quarantine")
    rows = aside.where(aside["_kafka_topic"] == feed.topic).orderBy("_kafka_offset")
    return [
        (row[0], row[1], row[2].partition(" does not fit the table: ")[2])
        for row in rows.select("_kafka_offset", "error_class", "error_message").collect()
    ]


def test_schemas_change_while_records_come(new_feed: Callable[[], Feed]) -> None:
    orders, many, remade = new_feed(), new_feed(), new_feed()
    old: dict[str, Any] = {
        "id": 1, "amount": 0.5, "price": Decimal("9.99"), "note": "n", "gone": "g",
        "status": "PAID", "inner": {"x": 1}, "tags": [1], "choice": 7,
    }  # fmt: skip
    new: dict[str, Any] = {
        "id": 2**40, "amount": 0.1, "price": Decimal("1234567.89"), "note": None,
        "status": "SENT", "inner": {"y": "y", "x": 2**40}, "tags": [2**40], "choice": True,
        "added": "a",
    }  # fmt: skip

    first = orders.register(FIRST)
    orders.send(framed(first, FIRST, old))
    before = record("Order", id="int", name="string")
    number = remade.register(before)
    remade.send(framed(number, before, {"id": 1, "name": "a"}))
    versions = [
        record("Wide", id="int", **{f"f{k}": "string" for k in range(1, count)})
        for count in range(1, 31)
    ]
    ids = register(many, *versions)
    values = [
        framed(ids[at], versions[at], {"id": at, **{f"f{k}": f"{k}" for k in range(1, at + 1)}})
        for at in [*range(30), *reversed(range(30))]
    ]
    many.send(*values)
    ingest_all([orders, remade, many])
    kinds = dict(orders.services.spark.table(orders.table).dtypes)
    assert (kinds["id"], kinds["amount"], kinds["price"]) == ("int", "float", "decimal(6,2)")

    worded = {**WIDER, "doc": "Words.", "fields": [dict(f) for f in WIDER["fields"]]}
    worded["fields"][0] |= {"doc": "The order.", "default": 5}
    wider, same, renamed, text_id, scale = register(
        orders, WIDER, worded, RENAMED, TEXT_ID, OTHER_SCALE
    )
    assert len({first, wider, same, renamed, text_id, scale}) == 6
    orders.send(
        framed(wider, WIDER, new),
        framed(text_id, TEXT_ID, {"id": "x"}),
        framed(first, FIRST, old),
        framed(renamed, RENAMED, {"id": 3, "comment": "c", "when": 0}),
        framed(scale, OTHER_SCALE, {"id": 4, "price": Decimal("1.234")}),
        framed(same, worded, {**new, "choice": "s"}),
    )
    # The registry has forgotten the first version; the table has not.
    client = SchemaRegistryClient({"url": remade.stack.home.registry_url})
    client.delete_subject(f"{remade.topic}-value")
    clash, fits = record("Order", id="string"), record("Order", id="long", more="int")
    clashing, fitting = register(remade, clash, fits)
    remade.send(
        framed(clashing, clash, {"id": "x"}), framed(fitting, fits, {"id": 2**40, "more": 1})
    )
    ingest_all([orders, remade])

    kinds = dict(orders.services.spark.table(orders.table).dtypes)
    assert (kinds["id"], kinds["amount"]) == ("bigint", "double")
    assert kinds["price"] == "decimal(9,2)"
    assert kinds["inner"] == "struct<x:bigint,y:string>"
    assert kinds["choice"] == "struct<long:bigint,string:string,boolean:boolean>"
    absent = dict.fromkeys(("added", "comment", "when"))
    member = dict.fromkeys(("long", "string", "boolean"))
    was = {
        **old, **absent, "inner": Row(x=1, y=None), "choice": Row(**{**member, "long": 7})
    }  # fmt: skip
    now = {
        **new, **absent, "added": "a", "gone": None, "inner": Row(x=2**40, y="y"),
        "choice": Row(**{**member, "boolean": True}),
    }  # fmt: skip
    assert [row for row in table(orders) if row["comment"] is None] == [
        was, now, was, {**now, "choice": Row(**{**member, "string": "s"})}
    ]  # fmt: skip
    (third,) = (row for row in table(orders) if row["comment"] is not None)
    assert (third["id"], third["comment"], str(third["when"])) == (3, "c", "1970-01-01")
    assert {value for name, value in third.items() if name not in ("id", "comment", "when")} == {
        None
    }
    assert reasons(orders) == [
        (2, "incompatible", "id: string where earlier versions have long"),
        (
            5,
            "incompatible",
            "price: decimal(9,3) on bytes where earlier versions have decimal(9,2) on bytes",
        ),
    ]

    rows = table(many)
    assert [row["id"] for row in rows] == [*range(30), *reversed(range(30))]
    for row in rows:
        assert [row[f"f{k}"] for k in range(1, 30)] == [
            f"{k}" if k <= row["id"] else None for k in range(1, 30)
        ]

    assert [row["id"] for row in table(remade)] == [1, 2**40]
    assert reasons(remade) == [(1, "incompatible", "id: string where the table has int")]
    for feed in (orders, many, remade):
        assert all(proof.holds for proof in proofs(feed))
