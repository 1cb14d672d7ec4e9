"""Tables captured from databases: before anything was captured, and what of it lands in bronze.

Fails when a change of a captured table is lost on its way to bronze, or a schema that
contradicts the source is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sandbox.settings import PROJECT
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.profile import load_connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import ConfigurationError, NothingCaptured
from spark_ingest.lake import bronze
from spark_ingest.sources import read_streams
from spark_ingest.streaming import tables
from spark_ingest.streaming.plan import plan
from spark_ingest.streaming.services import Services
from tests.python.stack.captured_records import (
    FILM,
    decimal,
    envelope,
    flattened,
    key_schema,
    meaning,
    source,
    with_field,
)
from tests.python.stack.conftest import Feed, Reports, proofs, running, wait_for
from tests.python.world.avro import framed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.python.conftest import Stack

ROW = (
    "struct<film_id:int,title:string,length:int,rental_rate:decimal(4,2),rating:string,"
    "special_features:array<string>,last_update:bigint>"
)
OF_ENVELOPE = {
    "before": ROW,
    "after": ROW,
    "source": "struct<lsn:bigint,txId:bigint,snapshot:string>",
    "op": "string",
    "_key": "struct<film_id:int>",
    "_kafka_offset": "bigint",
}
OF_ROW = {
    "film_id": "int",
    "title": "string",
    "rental_rate": "decimal(4,2)",
    "__op": "string",
    "__lsn": "bigint",
}
ENVELOPE = {"form": "envelope", "key": ["film_id"]}
FLATTENED = {"form": "flattened", "key": ["film_id"]}
Make = Callable[[str, Mapping[str, Any], Mapping[str, str]], Feed]


@pytest.fixture
def admin(stack: Stack) -> AdminClient:
    return AdminClient({"bootstrap.servers": stack.home.bootstrap_servers})


@pytest.fixture
def captured(
    stack: Stack, spark: SparkSession, tmp_path: Path, admin: AdminClient
) -> Iterator[Make]:
    """Makes feeds of captured tables of which nothing was captured yet."""
    connections = load_connections(PROJECT / "profiles" / "ingest.yml", None, stack.env)
    made: list[Feed] = []

    def make(name: str, captured: Mapping[str, Any], columns: Mapping[str, str]) -> Feed:
        ingest = {"topic": f"captured.public.{name}", "key": "confluent", "captured": captured}
        node = {
            "source_name": "captured",
            "name": name,
            "schema": "bronze",
            "identifier": f"captured__{name}",
            "description": "Changes of a test.",
            "columns": {
                column: {"name": column, "description": "A column.", "data_type": kind}
                for column, kind in columns.items()
            },
            "tags": [],
            "original_file_path": "models/captured.yml",
            "config": {"meta": {"ingest": ingest}},
        }
        manifest = tmp_path / f"{name}.json"
        manifest.write_text(json.dumps({"sources": {name: node}}))
        (stream,) = read_streams(manifest)
        registry, reports = SchemaRegistry(connections), Reports()
        broker = Broker(connections)
        services = Services(spark, connections, broker, registry, reports)
        made.append(Feed(stack, stream, services, reports, manifest))
        return made[-1]

    yield make
    for feed in made:
        spark.sql(f"drop table if exists {feed.table}")
        if feed.services.broker.topic(feed.topic) is not None:
            admin.delete_topics([feed.topic])[feed.topic].result()


@pytest.fixture
def begin(admin: AdminClient) -> Callable[[Feed], None]:
    """Makes a feed's topic, as the connector does with the first change."""

    def make(feed: Feed) -> None:
        admin.create_topics([NewTopic(feed.topic, 2, 1)])[feed.topic].result()
        wait_for(lambda: feed.services.broker.topic(feed.topic))

    return make


class Changes:
    """Sends a table's changes under one schema, which it registers."""

    def __init__(self, feed: Feed, schema: dict[str, Any]) -> None:
        self._feed = feed
        self._schema = schema
        self._id = feed.register(schema)
        self._key = key_schema(feed.topic, "film_id")
        self._key_id = feed.register(self._key, f"{feed.topic}-key")

    def send(self, film_id: int | None, value: dict[str, Any] | None) -> None:
        """Send a change of one row, its tombstone (None), or of all rows (no key)."""
        key = None
        if film_id is not None:
            key = framed(self._key_id, self._key, {"film_id": film_id})
        body = None if value is None else framed(self._id, self._schema, value)
        producer = self._feed.producer()
        producer.produce(self._feed.topic, body, key, 0)
        assert producer.flush(30) == 0


def film(number: int, **more: Any) -> dict[str, Any]:
    return {
        "film_id": number,
        "title": f"Film {number}",
        "length": 90,
        "rental_rate": Decimal("4.99"),
        "rating": "PG",
        "special_features": ["Trailers", None],
        "fulltext": "'film':1",
        "released_on": 13_149,
        "last_update": 1_767_225_600_000_000,
        **more,
    }


def rows(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    found = feed.services.spark.table(feed.table).orderBy("_kafka_offset")
    return [tuple(row) for row in found.selectExpr(*columns).collect()]


def test_an_envelopes_changes_all_land_whatever_the_table_becomes(
    captured: Make, begin: Callable[[Feed], None]
) -> None:
    feed = captured("film", ENVELOPE, OF_ENVELOPE)
    tables.create_tables(feed.services, [feed.stream])
    begin(feed)
    topic, old = feed.topic, film(1)
    changes = Changes(feed, envelope(topic, FILM))
    changes.send(1, {"after": old, "source": source(1, snapshot="last"), "op": "r"})
    new = film(1, title="New", length=None)
    changes.send(1, {"before": old, "after": new, "source": source(2), "op": "u"})
    changes.send(1, {"before": new, "source": source(3), "op": "d"})
    changes.send(1, None)
    changes.send(None, {"source": source(4), "op": "t"})
    feed.ingest()
    # A column is added and another widened; the last one is gone again.
    wider = with_field(FILM, "rental_rate", decimal(6, 2))
    wider = with_field(wider, "length", "int")
    wider = with_field(wider, "streams_on", {"type": "array", "items": "string"})
    later = Changes(feed, envelope(topic, wider))
    row = film(2, rental_rate=Decimal("1234.50"), streams_on=["a"])
    later.send(2, {"after": row, "source": source(5), "op": "c"})
    less = Changes(feed, envelope(topic, [f for f in FILM if f["name"] != "rating"]))
    less.send(3, {"after": film(3), "source": source(6), "op": "c"})

    feed.ingest()

    assert feed.quarantined() == []
    assert all(proof.holds for proof in proofs(feed))
    assert rows(feed, "op", "_key.film_id", "after.film_id", "before.film_id") == [
        ("r", 1, 1, None),
        ("u", 1, 1, 1),
        ("d", 1, None, 1),
        (None, 1, None, None),
        ("t", None, None, None),
        ("c", 2, 2, None),
        ("c", 3, 3, None),
    ]
    assert rows(feed, "_is_tombstone", "_kafka_key is null")[3:5] == [(True, False), (False, True)]
    # The same name in any case, as on an engine that has names in lower case alone.
    assert rows(feed, "source.txid", "SOURCE.LSN")[0] == (701, 1)
    assert rows(feed, "after.rental_rate", "after.streams_on", "after.rating")[5:] == [
        (Decimal("1234.50"), ["a"], "PG"),
        (Decimal("4.99"), None, None),
    ]
    types = dict(feed.services.spark.table(feed.table).dtypes)
    assert types["after"] == (
        "struct<film_id:int,title:string,length:int,rental_rate:decimal(6,2),rating:string,"
        "special_features:array<string>,last_update:bigint,fulltext:string,released_on:int,"
        "streams_on:array<string>>"
    )
    assert types["before"] == types["after"]
    assert types["transaction"].startswith("struct<id:string,total_order:bigint")


def test_a_flattened_row_has_the_connectors_fields_beside_it(
    captured: Make, begin: Callable[[Feed], None]
) -> None:
    feed = captured("flat", FLATTENED, OF_ROW)
    tables.create_tables(feed.services, [feed.stream])
    before = feed.services.spark.table(feed.table).columns
    begin(feed)
    of_mariadb = {
        "day": meaning("int", "io.debezium.time.Date"),
        "is_new": "boolean",
        "blob": "bytes",
    }
    fields = FILM
    for name, kind in of_mariadb.items():
        fields = with_field(fields, name, kind)
    changes = Changes(feed, flattened(feed.topic, fields))
    added = {"__db": "d", "__table": "film", "__schema": "public", "__source_txId": 9}
    made = {**film(1), **added, "__op": "c", "__lsn": 1, "__deleted": "false"}
    changes.send(1, {**made, "day": 20_454, "is_new": True, "blob": b"\x00\xff"})
    changes.send(1, {**made, "__op": "d", "__lsn": 2, "__deleted": "true"})
    changes.send(1, None)

    feed.ingest()

    assert feed.quarantined() == []
    assert rows(feed, "__op", "__lsn", "__deleted", "_is_tombstone") == [
        ("c", 1, "false", False),
        ("d", 2, "true", False),
        (None, None, None, True),
    ]
    assert rows(feed, "__source_txid", "__SOURCE_TXID", "day", "is_new", "blob")[0] == (
        (9, 9, 20_454, True, bytearray(b"\x00\xff"))
    )
    spark = feed.services.spark
    assert before == [*OF_ROW, *bronze.METADATA.names]
    assert "__source_txId" in spark.table(feed.table).columns


def test_a_schema_that_contradicts_the_source_is_refused_before_a_row_is_written(
    captured: Make, begin: Callable[[Feed], None]
) -> None:
    feed = captured("wrong", ENVELOPE, {**OF_ENVELOPE, "op": "int"})
    tables.create_tables(feed.services, [feed.stream])
    begin(feed)
    changes = Changes(feed, envelope(feed.topic, FILM))
    changes.send(1, {"after": film(1), "source": source(1), "op": "c"})

    said = (
        r"models/captured\.yml: source captured\.wrong: column op: its data_type contradicts "
        r".*string where the table has int.* write string, .*drop table lake.bronze.captured__wrong"
    )
    with pytest.raises(ConfigurationError, match=said):
        feed.ingest()
    with pytest.raises(ConfigurationError, match=said):
        plan(feed.services, feed.stream)

    assert (feed.offsets(), feed.quarantined()) == ([], [])
    # As the error says.
    feed.services.spark.sql(f"drop table {feed.table}")
    right = captured("wrong", ENVELOPE, OF_ENVELOPE)
    (batch,) = right.ingest()
    assert (batch.rows, batch.quarantined) == (1, 0)


def test_a_table_that_nothing_shows_the_columns_of_is_not_made(captured: Make) -> None:
    feed = captured("bare", ENVELOPE, {})

    with pytest.raises(ConfigurationError, match=r"data_type in models/captured\.yml"):
        tables.create_tables(feed.services, [feed.stream])

    assert not bronze.exists(feed.services.spark, feed.stream.table)


def test_a_topic_that_appears_while_the_streams_run_is_taken_up(
    captured: Make, begin: Callable[[Feed], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_ingest.streaming.supervise._TOPIC_SECONDS", 0.5)
    feed = captured("later", ENVELOPE, OF_ENVELOPE)

    with running(feed) as failures:
        wait_for(lambda: feed.reports.notes)
        begin(feed)
        changes = Changes(feed, envelope(feed.topic, FILM))
        changes.send(1, {"after": film(1), "source": source(1), "op": "c"})
        wait_for(lambda: feed.reports.batches)

    assert failures == []
    assert rows(feed, "after.title") == [("Film 1",)]
    (waited, stopped) = feed.reports.notes
    assert waited.startswith("captured.later: topic captured.public.later does not exist")
    assert waited.endswith("starts when it appears")
    assert stopped.startswith("stopping")


def test_a_topic_that_is_gone_after_it_was_read_is_an_error(
    captured: Make, begin: Callable[[Feed], None], admin: AdminClient
) -> None:
    feed = captured("gone", ENVELOPE, OF_ENVELOPE)
    begin(feed)
    changes = Changes(feed, envelope(feed.topic, FILM))
    changes.send(1, {"after": film(1), "source": source(1), "op": "c"})
    feed.ingest()
    admin.delete_topics([feed.topic])[feed.topic].result()
    wait_for(lambda: feed.services.broker.topic(feed.topic) is None)

    with pytest.raises(ConfigurationError, match=r"captured\.gone\) does not exist"):
        feed.ingest()


@pytest.mark.nightly
def test_commands_pass_over_what_was_never_captured(
    captured: Make, begin: Callable[[Feed], None]
) -> None:
    feed = captured("never", FLATTENED, OF_ROW)
    other = captured("beside", ENVELOPE, OF_ENVELOPE)
    begin(other)
    changes = Changes(other, envelope(other.topic, FILM))
    changes.send(1, {"after": film(1), "source": source(1), "op": "c"})
    sources = {
        one.stream.name: json.loads(one.manifest.read_text())["sources"].popitem()[1]
        for one in (feed, other)
    }
    both = feed.manifest.with_name("both.json")
    both.write_text(json.dumps({"sources": sources}))
    missing = "captured.never: topic captured.public.never does not exist"

    def command(*words: str) -> str:
        done = feed.command(*words, manifest=both)
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    landed = command("run", "--once")
    planned = command("plan")
    proved = command("verify")
    refused = feed.command("run", "captured.never", "--once", manifest=both)

    assert f"{missing}: nothing was captured yet" in landed
    assert '"stream": "captured.beside"' in landed
    assert missing in planned
    assert "captured.never: form flattened does not show TRUNCATE" in planned
    assert "captured.never: never started, nothing to verify" in proved
    assert isinstance(refused.exception, NothingCaptured)
    assert refused.exception.exit_code == 2
    assert missing in str(refused.exception)
    assert feed.services.spark.table(feed.table).columns[:2] == ["film_id", "title"]
