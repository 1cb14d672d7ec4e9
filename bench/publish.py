"""How fast a mart is published, beside a producer that sends the same records and no more.

::

    sandbox up && eval "$(sandbox env)"
    python -m bench.publish                     # a million rows, then a tenth of them changed
    python -m bench.publish --rows 10000        # does it work?
    python -m bench.publish --write-docs        # and put the results into the docs

Makes a table and two topics of its own, and removes them at the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report.machine import Measurement
from bench.report.results import Cell, Results, Table
from bench.run import Benchmark
from sandbox.settings import PROJECT
from spark_ingest.connect.broker import Broker
from spark_ingest.connect.profile import Connections, load_connections
from spark_ingest.connect.registry import SchemaRegistry
from spark_ingest.errors import MillraceError
from spark_ingest.lake.session import open_session
from spark_ingest.publish.publications import MartColumn, Publication, PublishMeta
from spark_ingest.publish.publisher import LARGEST_TRANSACTION, Publisher
from spark_ingest.streaming.progress import LineProgress
from spark_ingest.streaming.services import Services

_DAYS = 30
_COLUMNS = {
    "record_key": "sha2(cast(id as string), 256)",
    "product_id": "concat('SF', id % 27)",
    "quantity": "cast(id % 3 + 1 as int)",
    "total_amount": "cast(id % 1000 / 100 as decimal(18,2))",
    "purchased_at": f"timestamp '2026-01-01' + make_interval(0, 0, 0, id % {_DAYS})",
}

BENCHMARK = Benchmark("publish")
_SENT = {"what is sent": 0, "records": 0, "seconds": 1, "records/s": 0}


def publish(
    rows: Annotated[int, typer.Option(min=10, help="Rows of the mart.")] = 1_000_000,
) -> Iterator[Results]:
    """Publish a mart, change a tenth of its rows on a tenth of its days, and publish again."""
    measurement = Measurement(BENCHMARK.name)
    sent = measure(rows)
    largest = f"The largest transaction had {min(rows, LARGEST_TRANSACTION):,} records."
    yield Results(
        parts={"publish": [Table(columns=_SENT, rows=sent), largest, measurement.about()]}
    )


def measure(rows: int) -> list[list[Cell]]:
    """Publish twice, and send the same records by a producer alone."""
    profile = PROJECT / "profiles" / "ingest.yml"
    connections = load_connections(profile, None)
    spark = open_session()
    name = f"publish_{uuid4().hex[:8]}"
    mart = f"lake.bench.{name}"
    selected = ", ".join(f"{sql} as {column}" for column, sql in _COLUMNS.items())
    spark.sql("create namespace if not exists lake.bench")
    spark.sql(
        f"create table {mart} using iceberg partitioned by (days(purchased_at)) as "
        f"select {selected} from range({rows})"
    )
    publication = Publication(
        name,
        f"bench.{name}",
        "A purchase.",
        tuple(MartColumn(column, "", is_required=True) for column in _COLUMNS),
        PublishMeta(topic=f"bench.{name}", key=("record_key",), partitions=4),
        str(Path(__file__)),
    )
    services = Services(
        spark, connections, Broker(connections), SchemaRegistry(connections), LineProgress()
    )
    try:
        with _topics(connections, publication.topic, f"{publication.topic}.plain"):
            with Publisher(services, publication) as publisher:
                sent = [_measured("a whole mart", publisher)]
                spark.sql(
                    f"update {mart} set quantity = quantity + 1 "
                    f"where day(purchased_at) <= {_DAYS // 10}"
                )
                sent.append(_measured("the changes of a tenth of it", publisher))
            return [*sent, _plain(services, publication)]
    finally:
        spark.sql(f"drop table {mart} purge")


def _row(what: str, records: int, seconds: float) -> list[Cell]:
    return [what, records, round(seconds, 2), round(records / seconds)]


def _measured(what: str, publisher: Publisher) -> list[Cell]:
    """Publish what changed."""
    done = publisher.publish()
    if done is None:
        raise MillraceError("the mart has no new snapshot")
    return _row(what, done.rows, done.seconds)


def _plain(services: Services, publication: Publication) -> list[Cell]:
    """Send the same bytes by a producer alone."""
    broker = services.broker
    topic = broker.existing_topic(publication.topic, publication.name)
    ends = broker.end_offsets(topic)
    records = [
        (message.key(), message.value())
        for partition, end in ends.items()
        for message in broker.messages(topic.name, partition, 0, end)
    ]
    producer = Producer(
        {
            "bootstrap.servers": services.connections.bootstrap_servers,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    begun = time.monotonic()
    for key, value in records:
        while True:
            try:
                producer.produce(f"{topic.name}.plain", value, key)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()
    seconds = time.monotonic() - begun
    what = "all these records, by a producer that does nothing else"
    return _row(what, len(records), seconds)


@contextmanager
def _topics(connections: Connections, *names: str) -> Iterator[None]:
    admin = AdminClient({"bootstrap.servers": connections.bootstrap_servers})
    for future in admin.create_topics([NewTopic(n, 4, 1) for n in names]).values():
        future.result(30)
    try:
        yield
    finally:
        for future in admin.delete_topics(list(names)).values():
            future.result(30)


if __name__ == "__main__":
    BENCHMARK.run(publish)
