"""A topic's records in transactions, each with the record of how far the topic is in the same one.

One driver writes a topic. Its producer has the topic's own ``transactional.id``, so that a
second publisher fences the first, and what either left open is aborted before the progress is
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
"""Compacted: the newest record of a topic's name says how far that topic is."""
ID_PREFIX = "millrace.publish."
"""What each topic's ``transactional.id`` begins with; the topic's name follows."""
_SECONDS = 60.0
# Readers of what is committed wait as long for a publisher that died inside of a transaction.
_TRANSACTION_MS = 600_000
# A new publisher waits until the broker has ended what another one with its id left open.
_ATTEMPTS = 10
_FATAL_SECONDS = 5.0
_T = TypeVar("_T")


@dataclass(frozen=True)
class Progress:
    """How far a topic is.

    Attributes:
        publication: The exposure's name.
        topic_id: Kafka's UUID of the topic: one that was made again holds nothing.
        table_uuid: Iceberg's UUID of the mart.
        snapshot_id: The mart's snapshot that the topic holds.
        schema_ids: The registry's ids of key and value.
        is_whole: False inside of a publication of several transactions: the topic holds some
            of the snapshot's changes.
    """

    publication: str
    topic_id: str
    table_uuid: str
    snapshot_id: int
    schema_ids: tuple[int, int]
    is_whole: bool


def read_progress(broker: Broker, topic: str) -> Progress | None:
    """How far a topic is, by what is committed; None where no publication wrote it.

    Who is about to write asks once its producer is the only one: the record of another's
    open transaction would be committed, or not, behind its back.
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
                # As Java's producers choose a key's partition.
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 500_000,
            }
        )

    def fence_others(self) -> None:
        """Become the topic's only writer, before anything is sent: what others left is ended."""
        self._try(lambda: self._producer.init_transactions(_SECONDS))

    def send(self, key: bytes, value: bytes | None) -> None:
        """Send a record, a tombstone where the value is None; the first begins a transaction."""
        self._begin()
        self._produce(self._topic, key, value)

    def commit(self, progress: Progress) -> None:
        """Commit what was sent, with how far the topic is now."""
        self._begin()
        value = json.dumps(asdict(progress)).encode()
        self._produce(PROGRESS_TOPIC, self._topic.encode(), value)
        self._try(lambda: self._producer.commit_transaction(_SECONDS))
        self._is_open = False

    def abort(self) -> None:
        """Abort what was sent and not committed; readers of what is committed never see it."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._producer.abort_transaction(_SECONDS)
        except KafkaException:
            # Fenced, or no broker answers: it ends the transaction by itself.
            self.forget()

    def forget(self) -> None:
        """Drop what was not sent: librdkafka may abort a process that leaves it to be sent."""
        self._producer.purge()
        # What comes first may be the fatal error that a fenced producer had, by an exception.
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
            # That another publisher fenced this one may be heard here, too.
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
                f"{name}: another `spark-ingest publish` took this topic over: let one of them "
                "run; nothing is lost, what this one had not committed was aborted"
            )
        if "AUTHORIZATION_FAILED" in reason.name():
            of = f"{ID_PREFIX}{name}" if "TRANSACTIONAL" in reason.name() else name
            return self._cluster.failure(error, of, "WRITE, DESCRIBE")
        if reason.name() == "_TIMED_OUT":
            self._cluster.explain()
        return ServiceUnavailable(f"{name}: Kafka did not take the records: {reason.str()}")

    def _reason(self, error: KafkaException) -> Any:
        """The KafkaError behind an exception.

        librdkafka answers with "fatal error" alone once it had one; the error itself comes as an
        exception of whoever polls next.
        """
        if error.args[0].name() == "_FATAL":
            try:
                self._producer.poll(_FATAL_SECONDS)
            except KafkaException as cause:
                return cause.args[0]
        return error.args[0]
