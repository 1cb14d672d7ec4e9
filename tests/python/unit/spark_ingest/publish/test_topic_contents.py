"""What a reader of a published topic has: the newest row of each key."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import fastavro
import pytest
from pyspark.sql.types import ArrayType, DecimalType, StringType, StructType, TimestampType

from spark_ingest.avro.framing import header
from spark_ingest.connect.broker import Broker, Topic
from spark_ingest.errors import ConfigurationError
from spark_ingest.publish.publications import Envelope, MartColumn, Publication, PublishMeta
from spark_ingest.publish.record_schemas import read_schemas, record_schemas
from spark_ingest.publish.topic_contents import change_value, read_rows

TOPIC = Topic("out.sales", "id", (0, 1))
COLUMNS = (
    MartColumn("region", "Where.", is_required=True),
    MartColumn("amount", "How much.", is_required=False),
    MartColumn("at", "When.", is_required=True),
)
MART = (
    StructType()
    .add("at", TimestampType())
    .add("amount", DecimalType(18, 2))
    .add("region", StringType())
    .add("_commit_id", StringType())
)


@dataclass
class Sent:
    of_key: bytes
    of_value: bytes | None

    def key(self) -> bytes:
        return self.of_key

    def value(self) -> bytes | None:
        return self.of_value


class Log:
    """A broker with these records in its partitions."""

    def __init__(self, *partitions: list[Sent]) -> None:
        self._partitions = partitions

    def first_offsets(self, topic: Topic) -> dict[int, int]:
        return dict.fromkeys(topic.partitions, 0)

    def end_offsets(self, topic: Topic) -> dict[int, int]:
        return {number: len(self._partitions[number]) for number in topic.partitions}

    def messages(self, topic: str, partition: int, first: int, end: int) -> Iterator[Sent]:
        yield from self._partitions[partition][first:end]


def rows(envelope: Envelope, *partitions: list[Sent]) -> dict[bytes, bytes]:
    return read_rows(cast("Broker", Log(*partitions)), TOPIC, envelope)


def publication(envelope: Envelope) -> Publication:
    meta = PublishMeta(topic="out.sales", key=("region",), envelope=envelope)
    return Publication("out", "marts.sales", "A sale.", COLUMNS, meta, "x.yml")


def written(schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), row)
    return buffer.getvalue()


def test_the_newest_record_of_a_key_counts_and_a_tombstone_ends_it() -> None:
    held = rows(
        "upsert",
        [Sent(b"a", b"1"), Sent(b"b", b"1"), Sent(b"a", b"2")],
        [Sent(b"c", b"1"), Sent(b"c", None), Sent(b"d", None)],
    )
    assert held == {b"a": b"2", b"b": b"1"}


@pytest.mark.parametrize("committed_at", [0, 1, 63, 64, 1_790_000_000_000])
def test_a_change_is_avro_of_its_schema_and_gives_its_row_back(committed_at: int) -> None:
    schemas = record_schemas(publication("changes"), MART)
    row = {"region": "Europe", "amount": None, "at": 1_790_000_000_000_000}
    plain = header(7) + written(schemas.row, row)

    value = change_value(plain, "u", committed_at)

    change = {"_op": "u", "_committed_at": committed_at}
    assert value == header(7) + written(schemas.value, {**change, **row})
    gone = change_value(plain, "d", committed_at)
    held = rows("changes", [Sent(b"a", value)], [Sent(b"b", value), Sent(b"b", gone)])
    assert held == {b"a": plain}


@pytest.mark.parametrize("envelope", ["upsert", "changes"])
def test_schemas_have_the_columns_of_the_contract_in_its_order(envelope: Envelope) -> None:
    schemas = record_schemas(publication(envelope), MART)

    assert [field["name"] for field in schemas.row["fields"]] == ["region", "amount", "at"]
    region, amount, at = schemas.row["fields"]
    assert region["type"] == "string"
    assert at["type"] == {"type": "long", "logicalType": "timestamp-micros"}
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    assert (amount["type"], amount["default"]) == (["null", decimal], None)
    assert schemas.key["fields"] == [region]
    assert schemas.key["name"] != schemas.value["name"]
    again = read_schemas(schemas.key, schemas.value)
    assert again.row["fields"] == schemas.row["fields"]
    assert again == schemas


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (StructType().add("region", StringType()), "no column amount: run"),
        (
            StructType()
            .add("region", StringType())
            .add("amount", ArrayType(StringType()))
            .add("at", TimestampType()),
            "amount of marts.sales is array<string>, which is not supported",
        ),
    ],
)
def test_a_mart_that_has_no_such_column_or_type_is_refused(columns: StructType, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        record_schemas(publication("upsert"), columns)
