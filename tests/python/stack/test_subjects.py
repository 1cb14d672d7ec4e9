"""Topics of several types, whose subjects are named after records, from a real broker and registry.

Fails when a record of a topic of several types lands in another type's member, or nowhere, or a
restart makes other columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from pyspark.sql import Row

from spark_ingest.avro.framing import header
from spark_ingest.errors import ConfigurationError
from spark_ingest.sources import IngestMeta
from tests.python.stack.conftest import Feed, proofs, running, wait_for
from tests.python.stack.test_types import avro, ingest_all, record, table
from tests.python.world.avro import framed


def typed(name: str, **fields: Any) -> dict[str, Any]:
    return record(name, **fields) | {"namespace": "test.subjects"}


ADDRESS = typed("Address", street="string")
PLACED = typed("OrderPlaced", id="int", home="test.subjects.Address")
PAID = typed("OrderPaid", id="string")
PAID_LATER = typed("OrderPaid", id="string")
PAID_LATER["fields"].append({"name": "method", "type": ["null", "string"], "default": None})
REFUNDED = typed("OrderRefunded", id="int")


def declared(feed: Feed, *subjects: str) -> Feed:
    """The feed with subjects in its source."""
    ingest = IngestMeta(topic=feed.topic, subjects=subjects)
    manifest = json.loads(feed.manifest.read_text())
    (node,) = manifest["sources"].values()
    node["config"]["meta"]["ingest"]["subjects"] = list(subjects)
    feed.manifest.write_text(json.dumps(manifest))
    return replace(feed, stream=replace(feed.stream, ingest=ingest))


def placed(number: int, order: int) -> bytes:
    """A framed order, whose schema refers to that of an address."""
    value = {"id": order, "home": {"street": f"s{order}"}}
    return header(number) + avro([ADDRESS, PLACED], value)


def registered_placed(client: SchemaRegistryClient, subject: str) -> int:
    """Register the order, which refers to an address of a subject of its own; its id."""
    address = "test.subjects.Address"
    client.register_schema(address, Schema(json.dumps(ADDRESS), "AVRO"))
    reference = SchemaReference(address, address, 1)
    return client.register_schema(subject, Schema(json.dumps(PLACED), "AVRO", [reference]))


def test_types_of_one_topic_land_each_in_its_member(new_feed: Callable[[], Feed]) -> None:
    by_record, by_topic = new_feed(), new_feed()
    client = SchemaRegistryClient({"url": by_record.stack.home.registry_url})
    names = [f"test.subjects.{each['name']}" for each in (PLACED, PAID, REFUNDED)]
    subjects = {
        by_record.topic: names,
        by_topic.topic: [f"{by_topic.topic}-{name}" for name in names],
    }
    feeds, first = [], 0
    for feed, strategy in (
        (by_record, "RecordNameStrategy"),
        (by_topic, "TopicRecordNameStrategy"),
    ):
        of_placed, of_paid, _ = subjects[feed.topic]
        first = registered_placed(client, of_placed)
        refused = feed.command("run", "--once").exception
        assert isinstance(refused, ConfigurationError)
        assert f"no usable schema under subject {feed.topic}-value" in str(refused)
        for said in (strategy, "config.meta.ingest.subjects in none", of_placed):
            assert said in str(refused)
        feeds.append(declared(feed, of_placed, of_paid))
        feed.send(placed(first, 1), None)

    # One type is known, and has its member already.
    ingest_all(feeds)
    for feed in feeds:
        kinds = dict(feed.services.spark.table(feed.table).dtypes)
        assert kinds["value"] == ("struct<orderplaced:struct<id:int,home:struct<street:string>>>")

    paid = 0
    for feed in feeds:
        paid = feed.register(PAID, subjects[feed.topic][1])
        feed.send(
            framed(paid, PAID, {"id": "a"}),
            placed(first, 2),
            framed(paid, PAID, {"id": "b"}),
            placed(first, 3),
        )
    ingest_all(feeds)

    # Behind a restart: a further version, the first one deleted, and a type nobody declared.
    for feed in feeds:
        _, of_paid, of_refunded = subjects[feed.topic]
        later = feed.register(PAID_LATER, of_paid)
        client.delete_version(of_paid, 1)
        assert client.get_versions(of_paid) == [2]
        refunded = feed.register(REFUNDED, of_refunded)
        feed.send(
            framed(refunded, REFUNDED, {"id": 9}),
            framed(later, PAID_LATER, {"id": "c", "method": "card"}),
            framed(paid, PAID, {"id": "d"}),
            placed(first, 4),
        )
    ingest_all(feeds)
    for feed in feeds:
        feed.send(placed(first, 5))
    ingest_all(feeds)

    none = dict.fromkeys(("orderplaced", "orderpaid", "test_subjects_orderrefunded"))

    def of_type(member: str, **values: Any) -> Row:
        return Row(**{**none, member: Row(**values)})

    def order(number: int) -> Row:
        return of_type("orderplaced", id=number, home=Row(street=f"s{number}"))

    for feed in feeds:
        assert [row["value"] for row in table(feed)] == [
            order(1),
            None,
            of_type("orderpaid", id="a", method=None),
            order(2),
            of_type("orderpaid", id="b", method=None),
            order(3),
            of_type("test_subjects_orderrefunded", id=9),
            of_type("orderpaid", id="c", method="card"),
            of_type("orderpaid", id="d", method=None),
            order(4),
            order(5),
        ]
        # As a staging model says it, through nested_field.
        paid_ids = feed.services.spark.sql(
            "select cast(records.value.orderpaid.id as string) as order_id "
            f"from {feed.table} as records "
            "where cast(records.value.orderpaid.id as string) is not null"
        )
        assert sorted(row[0] for row in paid_ids.collect()) == ["a", "b", "c", "d"]
        assert feed.quarantined() == []
        assert all(proof.holds for proof in proofs(feed))
    verified = by_record.command("verify")
    assert verified.exit_code == 0, verified.output


def test_plan_and_the_check_of_schemas_know_declared_subjects(feed: Feed) -> None:
    first = f"{feed.topic}-test.subjects.OrderPaid"
    feed.register(PAID, first)
    feed = declared(feed, first, f"{feed.topic}-test.subjects.Nobody")

    planned = feed.command("plan")
    checked = feed.command("schemas", "check")

    assert planned.exit_code == 0, planned.output
    unknown = f"{feed.topic}-test.subjects.Nobody"
    assert f"subject {unknown} is not registered yet" in planned.output
    assert checked.exit_code == 1
    column = "column value (struct<orderpaid:struct<id:string>>)"
    assert f"lacks {column}" in checked.output
    assert f"lists the subject {unknown}, which the registry does" in checked.output
    assert f"subject {first}" not in planned.output + checked.output


def test_types_that_come_while_a_stream_runs_are_new_members(feed: Feed) -> None:
    subjects = [f"{feed.topic}-test.subjects.{name}" for name in ("OrderPaid", "Other")]
    feed = declared(feed, *subjects)
    paid = feed.register(PAID, subjects[0])
    with running(feed):
        feed.send(framed(paid, PAID, {"id": "a"}))
        wait_for(lambda: len(feed.offsets()) == 1)
        refunded = feed.register(REFUNDED, f"{feed.topic}-refunds")
        feed.send(framed(refunded, REFUNDED, {"id": 1}))
        wait_for(lambda: len(feed.offsets()) == 2)
        # Its subject is listed before those that were met.
        schema = typed("Other", id="long")
        other = feed.register(schema, subjects[1])
        feed.send(framed(other, schema, {"id": 2}), framed(paid, PAID, {"id": "b"}))
        wait_for(lambda: len(feed.offsets()) == 4)

    found = [
        {name: each.asDict() for name, each in row["value"].asDict().items() if each}
        for row in table(feed)
    ]
    assert found == [
        {"orderpaid": {"id": "a"}},
        {"test_subjects_orderrefunded": {"id": 1}},
        {"other": {"id": 2}},
        {"orderpaid": {"id": "b"}},
    ]
    assert feed.quarantined() == []
    assert all(proof.holds for proof in proofs(feed))


def test_one_subject_has_its_fields_as_columns(feed: Feed) -> None:
    subject = f"{feed.topic}-test.subjects.OrderPaid"
    number = feed.register(PAID, subject)
    feed = declared(feed, subject)
    feed.send(framed(number, PAID, {"id": "a"}))
    feed.ingest()
    assert table(feed) == [{"id": "a"}]
    assert feed.quarantined() == []
