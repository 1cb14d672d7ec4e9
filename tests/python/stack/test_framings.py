"""Each framing that a source can declare, from a real broker and registry into bronze.

Fails when a record in one of the supported framings does not land.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row

from spark_ingest.avro.framing import header
from spark_ingest.sources import IngestMeta
from tests.python.stack.conftest import ORDER, Feed
from tests.python.stack.test_types import avro, ingest_all, table
from tests.python.world.avro import framed

TYPES = {
    "id": "int",
    "name": "string",
    "price": "decimal(8,2)",
    "at": "timestamp",
    "day": "date",
    "tags": "array<string>",
    "size": "struct<w:int,h:int>",
}


def declared(feed: Feed, types: dict[str, str] | None = None, **ingest: Any) -> Feed:
    """The feed with another declaration of its stream."""
    meta = IngestMeta(topic=feed.topic, **ingest)
    return replace(feed, stream=replace(feed.stream, ingest=meta, types=types or {}))


def own_ids(feed: Feed, part: str = "value") -> dict[str, int]:
    """Apicurio's ids of the only version of the feed's values or keys."""
    base = feed.stack.home.registry_url.partition("/apis/")[0]
    artifacts = f"{base}/apis/registry/v3/groups/default/artifacts"
    place = f"{artifacts}/{feed.topic}-{part}/versions"
    with urllib.request.urlopen(place) as answer:
        (version,) = json.load(answer)["versions"]
    return {"global": version["globalId"], "content": version["contentId"]}


def send(feed: Feed, *records: tuple[bytes | None, bytes | None, dict[str, bytes]]) -> None:
    """Send keys, values and headers to one partition."""
    producer = feed.producer()
    for key, value, headers in records:
        producer.produce(feed.topic, value, key, 0, headers=list(headers.items()))
    assert producer.flush(30) == 0


def schema_ids(feed: Feed) -> list[int | None]:
    rows = feed.services.spark.table(feed.table).orderBy("_kafka_offset")
    return [row[0] for row in rows.select("_schema_id").collect()]


@pytest.mark.nightly
def test_framings_beside_confluents(new_feed: Callable[[], Feed]) -> None:
    order = {"id": 1, "note": "a"}
    payload = framed(0, ORDER, order)[5:]
    none: dict[str, bytes] = {}

    eight = declared(new_feed(), framing="apicurio")
    # So that Apicurio's two kinds of ids differ from here on: one text, two versions.
    eight.register(ORDER, subject=f"{eight.topic}-elsewhere")
    eight.register(ORDER)
    number = own_ids(eight)["global"].to_bytes(8, "big")
    eight.send(
        b"\x00" + number + payload,
        None,
        b"\x00" + number + payload + b"!",
        b"\x00" + (10**9).to_bytes(8, "big") + payload,
        b"\x00" + b"\xff" * 8 + payload,
        header(1),
    )

    contents = declared(new_feed(), framing="apicurio", ids="content")
    contents.register(ORDER)
    of_content = own_ids(contents)["content"].to_bytes(8, "big")
    contents.send(b"\x00" + of_content + payload)

    headers = declared(new_feed(), framing="apicurio-headers", key="apicurio-headers")
    headers.register(ORDER)
    headers.register("int", subject=f"{headers.topic}-key")
    key_id = own_ids(headers, "key")["global"].to_bytes(8, "big")
    value_id = own_ids(headers)["global"].to_bytes(8, "big")
    both = {"apicurio.key.globalId": key_id, "apicurio.value.globalId": value_id}
    send(
        headers,
        (b"\x0e", payload, both),
        (b"\x0e", payload[:-1], both),
        (b"\x0e", payload, {"apicurio.key.globalId": key_id}),
        (b"\x0e", None, both),
    )

    raw = declared(
        new_feed(), framing="avro", schema=json.dumps(ORDER), key="avro", key_schema="string"
    )
    text_key = avro(["string"], "k1")
    send(
        raw,
        (text_key, payload, none),
        (text_key, payload + b"\x00", none),
        (b"\x7f", payload, none),
        (None, None, none),
    )

    words = declared(new_feed(), framing="string", key="string")
    send(
        words,
        (b"k", "żółw".encode(), none),
        (b"k", b"\xff\xfe", none),
        (b"\xff", b"x", none),
        (None, None, none),
    )
    plain = declared(new_feed(), framing="bytes")
    plain.send(b"\xff\x00", b"", None)

    objects = declared(new_feed(), {**TYPES, "_key": "struct<id:int>"}, framing="json", key="json")
    whole = (
        '{"id": 1, "name": "ż", "price": 12.50, "at": "2022-09-01 10:00:00.123456", "day":'
        ' "2022-09-01", "tags": ["a", null], "size": {"w": 1, "h": 2, "d": 3}, "new": [1.10]}'
    )
    good_json = [whole, '{"name": {"x": 1}}', "{}", '{"price": "1.5", "at": null}']
    bad_json = [
        "", " ", "x", "5", "null", "[]", '[{"id": 1}]', '{"id": 1', '{"id": "one"}',
        '{"id": 99999999999}', '{"id": 1} {"id": 2}', '{"id": 1},{"id": 2}', "{'id': 1}",
        '{"id": 1}x', '{"day": "2022-13-01"}', '{"size": 5}', '{"price": 12345678901.5}',
    ]  # fmt: skip
    send(
        objects,
        *((b'{"id": 7}', text.encode(), none) for text in good_json),
        *((None, text.encode(), none) for text in bad_json),
        (None, b'{"name": "\xff"}', none),
        (b"x", b"{}", none),
        (None, None, none),
    )

    ingest_all([eight, contents, headers, raw, words, plain, objects])

    assert table(eight) == [order, {"id": None, "note": None}]
    assert schema_ids(eight) == [own_ids(eight)["global"], None]
    assert eight.quarantined() == [
        (2, "left_over_bytes"),
        (3, "unknown_id"),
        (4, "unknown_id"),
        (5, "not_framed"),
    ]
    assert table(contents) == [order]
    assert schema_ids(contents) == [own_ids(contents)["content"]]

    spark = headers.services.spark
    assert table(headers) == [order, {"id": None, "note": None}]
    keys = spark.table(headers.table).orderBy("_kafka_offset").select("_key").collect()
    assert [row[0] for row in keys] == [7, 7]
    assert headers.quarantined() == [(1, "undecodable"), (2, "not_framed")]

    assert table(raw) == [order, {"id": None, "note": None}]
    assert schema_ids(raw) == [None, None]
    keys = spark.table(raw.table).orderBy("_kafka_offset").select("_key").collect()
    assert [row[0] for row in keys] == ["k1", None]
    assert raw.quarantined() == [(1, "left_over_bytes"), (2, "key_undecodable")]

    assert table(words) == [{"value": "żółw"}, {"value": None}]
    assert words.quarantined() == [(1, "undecodable"), (2, "key_undecodable")]
    assert table(plain) == [{"value": b"\xff\x00"}, {"value": b""}, {"value": None}]

    nothing = dict.fromkeys(TYPES)
    assert table(objects) == [
        {
            "id": 1, "name": "ż", "price": Decimal("12.50"), "day": date(2022, 9, 1),
            "at": "2022-09-01 10:00:00.123456", "tags": ["a", None], "size": Row(w=1, h=2),
        },
        {**nothing, "name": '{"x":1}'},
        nothing,
        {**nothing, "price": Decimal("1.50")},
        nothing,
    ]  # fmt: skip
    rows = spark.table(objects.table).orderBy("_kafka_offset")
    assert [tuple(row) for row in rows.select("_json", "_key.id").collect()] == [
        *((text, 7) for text in good_json),
        (None, None),
    ]
    first_bad = len(good_json)
    assert objects.quarantined() == [
        *((first_bad + at, "undecodable") for at in range(len(bad_json) + 1)),
        (first_bad + len(bad_json) + 1, "key_undecodable"),
    ]
