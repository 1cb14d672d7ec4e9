"""Records of AWS Glue Schema Registry, compressed or not, from a real broker into bronze.

Fails when one of them does not land, or one that is damaged is not quarantined.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.sources import IngestMeta
from tests.python.stack.conftest import ORDER, Feed, proofs
from tests.python.stack.test_types import table
from tests.python.world.avro import framed

ARN = "arn:aws:glue:eu-west-1:123456789012:registry/events"
SIZED = {**ORDER, "fields": [*ORDER["fields"], {"name": "size", "type": "int", "default": 0}]}
LONGEST = 10_000


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The client of a registry ``events`` of Glue, as moto serves it."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():
        monkeypatch.setenv(name, value)
    made = boto3.client("glue", region_name="eu-west-1")
    made.create_registry(RegistryName="events")
    yield made
    server.stop()


def payload(schema: Any, record: Any) -> bytes:
    return framed(0, schema, record)[5:]


def plain(uuid: UUID, avro: bytes) -> bytes:
    return b"\x03\x00" + uuid.bytes + avro


def deflated(uuid: UUID, avro: bytes) -> bytes:
    return b"\x03\x05" + uuid.bytes + zlib.compress(avro)


def test_both_compressions_land_and_damaged_bytes_do_not(feed: Feed, client: Any) -> None:
    ingest = IngestMeta(topic=feed.topic, framing="glue", max_value_bytes=LONGEST)
    connections = feed.services.connections
    registry = connections.registry.model_copy(update={"url": ARN})
    asked = SchemaRegistry(connections.model_copy(update={"registry": registry}))
    feed = replace(
        feed,
        stream=replace(feed.stream, ingest=ingest),
        services=replace(feed.services, registry=asked),
    )
    made = client.create_schema(
        RegistryId={"RegistryName": "events"}, SchemaName=feed.topic, DataFormat="AVRO",
        Compatibility="BACKWARD", SchemaDefinition=json.dumps(ORDER),
    )  # fmt: skip
    first = UUID(made["SchemaVersionId"])
    order = {"id": 1, "note": "n" * 1000}
    avro = payload(ORDER, order)

    feed.send(plain(first, avro), deflated(first, avro), None)
    (batch,) = feed.ingest()
    # Decoded column by column, without Spark's rows.
    assert (batch.rows, batch.quarantined) == (3, 0)
    assert table(feed) == [order, order, {"id": None, "note": None}]

    schema_id = {"RegistryName": "events", "SchemaName": feed.topic}
    added = client.register_schema_version(
        SchemaId=schema_id, SchemaDefinition=json.dumps(SIZED)
    )  # fmt: skip
    second = UUID(added["SchemaVersionId"])
    sized = {**order, "size": 7}
    long = {"id": 2, "note": "n" * LONGEST}
    feed.send(
        deflated(second, payload(SIZED, sized)),
        # Behind the size limit as it is, or inflated.
        plain(first, payload(ORDER, long)),
        deflated(first, payload(ORDER, long)),
        deflated(first, avro)[:-1],
        deflated(first, avro) + b"\x00",
        deflated(first, avro + b"\x00"),
        deflated(uuid4(), avro),
        b"\x03\x01" + first.bytes + avro,
        b"\x03\x00" + first.bytes[:-1],
        framed(1, ORDER, order),
        deflated(first, avro),
    )
    (batch,) = feed.ingest()
    assert (batch.rows, batch.quarantined) == (2, 9)
    assert table(feed)[3:] == [sized, {**order, "size": None}]
    assert feed.quarantined() == [
        (4, "oversized"),
        *((at, "not_framed") for at in (5, 6, 7)),
        (8, "left_over_bytes"),
        (9, "unknown_id"),
        *((at, "not_framed") for at in (10, 11, 12)),
    ]
    assert all(proof.holds for proof in proofs(feed))
