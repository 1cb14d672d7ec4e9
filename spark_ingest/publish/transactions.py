"""Write a topic in Kafka transactions, each with a record of the topic's progress.

One driver writes a topic. The ``transactional.id`` of its producer is derived from the topic, so
that a second publisher fences the first, and open transactions are aborted before the progress is
read. Spark's Kafka sink has no transactions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from confluent_kafka import KafkaException, Producer

from spark_ingest.connect.broker import Broker
from spark_ingest.connect.cluster import Cluster
from spark_ingest.connect.profile import Connections
from spark_ingest.errors import MillraceError, PersonNeeded, ServiceUnavailable

PROGRESS_TOPIC = "millrace.publications"
"""A compacted topic: the newest record with a topic's name as its key has its progress."""
ID_PREFIX = "millrace.publish."
"""Prefix of ``transactional.id``; the topic's name follows."""
_SECONDS = 60.0
# read_committed consumers wait this long after a publisher died in a transaction.
_TRANSACTION_MS = 600_000
# A new publisher waits until the broker has aborted the open transaction of the fenced one.
_ATTEMPTS = 10
_FATAL_SECONDS = 5.0
_T = TypeVar("_T")


@dataclass(frozen=True)
class Progress:
    """The progress of a topic.

    Attributes:
        publication: The exposure's name.
        topic_id: Kafka's UUID of the topic; a recreated topic has another.
        table_uuid: Iceberg's UUID of the mart.
        snapshot_id: The published snapshot of the mart.
        schema_ids: The registry ids of key and value.
        is_whole: False between the transactions of one publication: the topic has only some of
            the snapshot's changes.
    """

    publication: str
    topic_id: str
    table_uuid: str
    snapshot_id: int
    schema_ids: tuple[int, int]
    is_whole: bool


def read_progress(broker: Broker, topic: str) -> Progress | None:
    """The committed progress of a topic; None if it was never published.

    A publisher must call this after it has fenced others: an open transaction of another one
    could still be committed otherwise.
    """
    where = broker.topic(PROGRESS_TOPIC)
    if where is None:
        return None
    begins, ends = broker.first_offsets(where), broker.end_offsets(where)
    found: bytes | None = None
    for partition in where.partitions:
        for record in broker.messages(where.name, partition, begins[partition], ends[partition]):
            if record.key() == topic.encode():
                found = record.value()
    if found is None:
        return None
    fields = json.loads(found)
    return Progress(**{**fields, "schema_ids": tuple(fields["schema_ids"])})


class TopicWriter:
    """The transactional producer of one topic."""

    def __init__(self, connections: Connections, topic: str) -> None:
        self._topic = topic
        self._cluster = Cluster(connections)
        self._is_open = False
        self._producer = Producer(
            {
                **self._cluster.settings,
                "transactional.id": f"{ID_PREFIX}{topic}",
                "transaction.timeout.ms": _TRANSACTION_MS,
                "compression.type": "lz4",
                "linger.ms": 20,
                # The default partitioner of Java producers.
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 500_000,
            }
        )

    def fence_others(self) -> None:
        """Fence other publishers of the topic and abort their open transactions."""
        self._try(lambda: self._producer.init_transactions(_SECONDS))

    def send(self, key: bytes, value: bytes | None) -> None:
        """Send a record, or a tombstone if the value is None; begin a transaction if needed."""
        self._begin()
        self._produce(self._topic, key, value)

    def commit(self, progress: Progress) -> None:
        """Commit the transaction with the progress of the topic."""
        self._begin()
        value = json.dumps(asdict(progress)).encode()
        self._produce(PROGRESS_TOPIC, self._topic.encode(), value)
        self._try(lambda: self._producer.commit_transaction(_SECONDS))
        self._is_open = False

    def abort(self) -> None:
        """Abort the open transaction, if any."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._producer.abort_transaction(_SECONDS)
        except KafkaException:
            # Fenced, or no broker answers: the broker aborts the transaction after its timeout.
            self.purge()

    def purge(self) -> None:
        """Drop unsent records: librdkafka may abort the process if they remain in the queue."""
        self._producer.purge()
        # The first call may raise the fatal error of a fenced producer.
        with suppress(KafkaException):
            self._producer.flush(0)

    def _begin(self) -> None:
        if not self._is_open:
            self._try(self._producer.begin_transaction)
            self._is_open = True

    def _produce(self, topic: str, key: bytes, value: bytes | None) -> None:
        try:
            while True:
                try:
                    self._producer.produce(topic, value, key)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            # This may also raise the error that another publisher fenced this one.
            self._producer.poll(0)
        except KafkaException as error:
            raise self._failure(error) from error

    def _try(self, step: Callable[[], _T]) -> _T:
        for attempt in range(_ATTEMPTS):
            try:
                return step()
            except KafkaException as error:
                if not error.args[0].retriable() or attempt == _ATTEMPTS - 1:
                    raise self._failure(error) from error
        raise AssertionError("unreachable")

    def _failure(self, error: KafkaException) -> MillraceError:
        reason = self._reason(error)
        name = self._topic
        if reason.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
            return PersonNeeded(
                f"{name}: another `spark-ingest publish` took over this topic: run only one of "
                "them; no data is lost, the open transaction was aborted"
            )
        if "AUTHORIZATION_FAILED" in reason.name():
            of = f"{ID_PREFIX}{name}" if "TRANSACTIONAL" in reason.name() else name
            return self._cluster.failure(error, of, "WRITE, DESCRIBE")
        if reason.name() == "_TIMED_OUT":
            self._cluster.explain()
        return ServiceUnavailable(f"{name}: Kafka did not accept the records: {reason.str()}")

    def _reason(self, error: KafkaException) -> Any:
        """The KafkaError of an exception.

        After a fatal error librdkafka only reports ``_FATAL``; the next ``poll`` raises the
        error itself.
        """
        if error.args[0].name() == "_FATAL":
            try:
                self._producer.poll(_FATAL_SECONDS)
            except KafkaException as cause:
                return cause.args[0]
        return error.args[0]
