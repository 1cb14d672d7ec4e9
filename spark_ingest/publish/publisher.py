"""Publish a mart: send its changes since the last publication to its topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from pyspark.sql import SparkSession

from spark_ingest.avro.framing import header
from spark_ingest.connect.broker import Topic
from spark_ingest.errors import PersonNeeded
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.publish.publications import Publication
from spark_ingest.publish.record_schemas import RecordSchemas, record_schemas
from spark_ingest.publish.row_changes import Mart, snapshot_rows
from spark_ingest.publish.topic_contents import change_value, read_rows
from spark_ingest.publish.transactions import PROGRESS_TOPIC, Progress, TopicWriter, read_progress
from spark_ingest.streaming.services import Services

LARGEST_TRANSACTION = 1_000_000
"""Maximum records of one transaction; larger publications have several and are not atomic."""
_COMPACTED = {"cleanup.policy": "compact"}
# A small topic: roll segments hourly, so that they are compacted.
_PROGRESS_CONFIG = {**_COMPACTED, "segment.ms": "3600000"}
_CHANGES_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1"}


@dataclass(frozen=True)
class Published:
    """The result of one publication.

    Attributes:
        snapshot_id: The published snapshot of the mart.
        rows: Number of records for new and changed rows.
        deletes: Number of records for deleted rows.
        transactions: Number of Kafka transactions.
    """

    snapshot_id: int
    rows: int
    deletes: int
    transactions: int
    seconds: float


class Record(NamedTuple):
    """A change to send: header and Avro binary of key and row, and the operation."""

    key: bytes
    row: bytes
    op: str


@dataclass(frozen=True)
class MartState:
    """The current state of a mart's table.

    Attributes:
        uuid: Iceberg's table UUID.
        snapshot_id: The current snapshot.
        committed_at: Its commit time, in milliseconds since 1970.
        snapshots: Ids of all snapshots that have not expired.
        schemas: The Avro schemas of its rows.
    """

    uuid: str
    snapshot_id: int
    committed_at: int
    snapshots: frozenset[int]
    schemas: RecordSchemas


def mart_state(spark: SparkSession, publication: Publication) -> MartState:
    """The current state of a mart's table.

    Raises:
        ConfigurationError: It does not exist, was never written, or violates its contract.
    """
    found = None
    if bronze.exists(spark, publication.mart):
        table = Jvm(spark).iceberg_table(publication.mart)
        found = table.currentSnapshot()
    if found is None:
        name = publication.mart.rpartition(".")[2]
        raise publication.error(
            "topic", f"{publication.mart} does not exist: run `dbt build --select +{name}`"
        )
    # The columns of the snapshot: those of the table may have changed since.
    number = found.snapshotId()
    columns = snapshot_rows(spark, publication.mart, number).schema
    return MartState(
        str(table.uuid()),
        number,
        found.timestampMillis(),
        frozenset(snapshot.snapshotId() for snapshot in table.snapshots()),
        record_schemas(publication, columns),
    )


class Changes:
    """The changes of a mart that are not in its topic yet.

    Attributes:
        of: The current state of the mart.
    """

    def __init__(
        self,
        services: Services,
        publication: Publication,
        topic: Topic,
        done: Progress | None,
        schema_ids: tuple[int, int],
        of: MartState,
    ) -> None:
        self.of = of
        self._services = services
        self._publication = publication
        self._topic = topic
        self._done = done
        self._headers = tuple(map(header, schema_ids))
        self._ids = schema_ids
        self._mart = Mart(services.spark, publication.mart, of.schemas)

    @property
    def is_known(self) -> bool:
        """Whether this topic, by its id, was published before."""
        return self._done is not None and self._done.topic_id == self._topic.id

    @property
    def since(self) -> int | None:
        """The published snapshot; None if the topic must be read to find the changes."""
        done, of = self._done, self.of
        if done is None or not self.is_known or not done.is_whole:
            return None
        if (done.table_uuid, done.schema_ids) != (of.uuid, self._ids):
            return None
        return done.snapshot_id if done.snapshot_id in of.snapshots else None

    def records(self) -> Iterator[Record]:
        """The records to send.

        Raises:
            PersonNeeded: A row cannot be published: its key is not unique, or a column that is
                not_null in the contract is null.
        """
        if self.since == self.of.snapshot_id:
            return
        if self.since is not None:
            yield from self._framed(self._mart.changes(self.since, self.of.snapshot_id))
            return
        published = read_rows(self._services.broker, self._topic, self._publication.meta.envelope)
        first = not published
        for record in self._framed(self._mart.rows(self.of.snapshot_id)):
            was = published.pop(record.key, None)
            if was is None:
                yield record._replace(op="r" if first else "c")
            elif was != record.row:
                yield record._replace(op="u")
        for key, row in published.items():
            yield Record(key, row, "d")

    def _framed(self, changes: Iterator[Any]) -> Iterator[Record]:
        of_key, of_row = self._headers
        for change in changes:
            if change.problem is not None:
                raise PersonNeeded(
                    f"exposure {self._publication.name}: {self._publication.mart} cannot be "
                    f"published: {change.problem}: fix the mart or config.meta.publish.key in "
                    f"{self._publication.file}; the transaction was aborted"
                )
            yield Record(of_key + change.key, of_row + change.row, change.op)


class Publisher:
    """Publishes one mart; a context manager. It fences other publishers of the topic.

    After a failure the state of the transaction is unknown: the next publication starts a new
    producer, which aborts an open transaction, and reads the progress of the topic.
    """

    def __init__(self, services: Services, publication: Publication, adopt: bool = False) -> None:
        self.publication = publication
        self._services = services
        self._adopt = adopt
        self._registered: tuple[RecordSchemas, tuple[int, int]] | None = None
        self._writer: TopicWriter | None = None
        self._done: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def publish(self) -> Published | None:
        """Send the changes; None if the current snapshot of the mart is published.

        Raises:
            ConfigurationError: The mart does not exist, the registry rejects its schema, or the
                topic has records of other producers.
            PersonNeeded: A row cannot be published, or another publisher took over.
            ServiceUnavailable: Kafka or the registry does not answer.
        """
        try:
            return self._publish(self._writer or self._open())
        except BaseException:
            self._close()
            raise

    def _open(self) -> TopicWriter:
        broker, meta = self._services.broker, self.publication.meta
        broker.create_topic(PROGRESS_TOPIC, 1, _PROGRESS_CONFIG)
        config = _COMPACTED if meta.envelope == "upsert" else _CHANGES_CONFIG
        broker.create_topic(meta.topic, meta.partitions, config)
        self._writer = TopicWriter(self._services.connections, meta.topic)
        self._writer.fence_others()
        self._done = read_progress(broker, meta.topic)
        return self._writer

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            self._writer = None

    def _publish(self, writer: TopicWriter) -> Published | None:
        began = time.monotonic()
        of = mart_state(self._services.spark, self.publication)
        topic = self._services.broker.topic(self.publication.topic)
        if topic is None:
            raise self.publication.error(
                "topic",
                f"{self.publication.topic} was deleted: restart `spark-ingest publish`, which "
                "creates it",
            )
        ids = self._schema_ids(of.schemas)
        changes = Changes(self._services, self.publication, topic, self._done, ids, of)
        if changes.since == of.snapshot_id:
            return None
        if not changes.is_known and not self._adopt:
            self._check_is_empty(topic)

        done = Progress(
            self.publication.name, topic.id, of.uuid, of.snapshot_id, ids, is_whole=True
        )
        rows = deletes = 0
        transactions = 1
        for record in changes.records():
            if rows + deletes == transactions * LARGEST_TRANSACTION:
                writer.commit(replace(done, is_whole=False))
                transactions += 1
            writer.send(record.key, self._value(record, of.committed_at))
            if record.op == "d":
                deletes += 1
            else:
                rows += 1
        writer.commit(done)
        self._done = done
        self._tag(of.snapshot_id)
        seconds = time.monotonic() - began
        return Published(of.snapshot_id, rows, deletes, transactions, seconds)

    def _value(self, record: Record, committed_at: int) -> bytes | None:
        if self.publication.meta.envelope == "changes":
            return change_value(record.row, record.op, committed_at)
        return None if record.op == "d" else record.row

    def _schema_ids(self, schemas: RecordSchemas) -> tuple[int, int]:
        if self._registered is None or self._registered[0] != schemas:
            register = self._services.registry.register
            key, value = self.publication.subjects
            ids = register(key, schemas.key), register(value, schemas.value)
            self._registered = schemas, ids
        return self._registered[1]

    def _check_is_empty(self, topic: Topic) -> None:
        broker = self._services.broker
        begins, ends = broker.first_offsets(topic), broker.end_offsets(topic)
        if any(ends[partition] > begins[partition] for partition in topic.partitions):
            raise self.publication.error(
                "topic",
                f"{topic.name} has records of other producers: use another topic, or --adopt, "
                "which deletes all keys that are not in the mart",
            )

    def _tag(self, snapshot_id: int) -> None:
        """Tag the published snapshot, so that it does not expire before the next publication."""
        self._services.spark.sql(
            f"alter table {CATALOG}.{self.publication.mart} create or replace tag "
            f"`published_{self.publication.name}` as of version {snapshot_id}"
        )
