"""Client of the Kafka cluster: topics, their ids and offsets, and options of Spark's source."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, OffsetSpec

from spark_ingest.connect.client_settings import java
from spark_ingest.connect.cluster import Cluster
from spark_ingest.connect.profile import Connections
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

_TIMEOUT = 10.0
_POLL_SECONDS = 0.2
_STATISTICS_MS = 1000
# Kafka's zero UUID, from a broker without topic ids.
_NO_ID = "A" * 22
# Reading on for this many offsets is faster than a seek.
_NEAR = 5000
_EARLIEST = -2
_T = TypeVar("_T")

# Large fetches: with the defaults a local read mostly waits.
_FETCH = {
    "max.poll.records": "20000",
    # Spark's source requests a partition's end offset after every poll. A broker processes
    # requests in order, so this one waits for the preceding fetch, up to 0.5 s by default.
    "fetch.max.wait.ms": "10",
    "fetch.max.bytes": str(64 * 1024 * 1024),
    # Skip records of aborted transactions.
    "isolation.level": "read_committed",
}

# Spark caches a consumer per partition, each with the records of its last and its next fetch,
# even if nothing is read: limit the fetch size of all partitions together.
_MOST_FETCHED = 64 * 1024 * 1024
_LARGEST_FETCH = 8 * 1024 * 1024
_SMALLEST_FETCH = 256 * 1024


# Start offsets of a table without commits: a point in time, or an end of the topic.
Begin = Literal["earliest", "latest"] | datetime


@dataclass(frozen=True)
class Topic:
    """The current topic of a name.

    Attributes:
        id: Kafka's UUID: a topic that was deleted and recreated has another one.
        partitions: Partition numbers.
    """

    name: str
    id: str
    partitions: tuple[int, ...]


class _Reading:
    """The progress of a consumer of one partition, from librdkafka's statistics."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = str(partition)
        self._next = -1
        self._since = time.monotonic()

    def begin(self) -> None:
        """Restart the timeout."""
        self._since = time.monotonic()

    def observe(self, statistics: str) -> None:
        """The statistics callback of librdkafka, called during polls."""
        topics = json.loads(statistics).get("topics", {})
        partitions = topics.get(self._topic, {}).get("partitions", {})
        following = partitions.get(self._partition, {}).get("next_offset", self._next)
        if following != self._next:
            self._next = following
            self._since = time.monotonic()

    def has_stalled(self) -> bool:
        """Whether there was no progress within the timeout."""
        return time.monotonic() - self._since > _TIMEOUT


class Broker:
    """Reads metadata of topics, and records that Spark cannot read."""

    def __init__(self, connections: Connections) -> None:
        self._cluster = Cluster(connections)
        try:
            self._admin = AdminClient(self._cluster.settings)
        except KafkaException as error:
            raise ConfigurationError(
                f"kafka in profiles/ingest.yml is invalid: {error.args[0].str()}"
            ) from error

    def topic(self, name: str) -> Topic | None:
        """The topic with this name; None if it does not exist.

        Raises:
            ConfigurationError: The cluster denies access, or has no topic ids.
            ServiceUnavailable: The cluster is unavailable.
        """
        future = self._admin.describe_topics(
            TopicCollection([name]), include_authorized_operations=True, request_timeout=_TIMEOUT
        )[name]
        try:
            described = self._answer(future)
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise self._cluster.failure(error, name) from error
        # Check it now: otherwise Spark fails later, with a stack trace.
        allowed = described.authorized_operations
        if allowed and AclOperation.READ not in allowed:
            raise self._cluster.no_right(name, "topic", "READ")
        partitions = tuple(sorted(partition.id for partition in described.partitions))
        topic_id = str(described.topic_id)
        if topic_id == _NO_ID:
            raise ConfigurationError(
                f"{self._cluster.servers} has no id for topic {name}, without which a recreated "
                "topic cannot be detected: topic ids require Kafka 2.8 or newer, and an "
                "inter.broker.protocol.version of 2.8 or newer"
            )
        return Topic(name, topic_id, partitions)

    def existing_topic(self, name: str, needed_by: str) -> Topic:
        """Like :meth:`topic`, for a topic that must exist.

        Raises:
            ConfigurationError: It does not exist.
            ServiceUnavailable: The cluster is unavailable.
        """
        topic = self.topic(name)
        if topic is None:
            raise ConfigurationError(
                f"topic {name} (source {needed_by}) does not exist on "
                f"{self._cluster.servers}: create it (`sandbox up` does for the sandbox) "
                "or fix config.meta.ingest.topic"
            )
        return topic

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic if it does not exist, with the cluster's default replication.

        ``config`` has its topic settings; an existing topic is not changed.

        Raises:
            ConfigurationError: The cluster denies it.
            ServiceUnavailable: The cluster is unavailable.
        """
        if self.topic(name) is not None:
            return
        new = NewTopic(name, num_partitions=partitions, config=dict(config))
        future = self._admin.create_topics([new], operation_timeout=_TIMEOUT)[name]
        try:
            self._answer(future)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise self._cluster.failure(error, name, "CREATE") from error

    def first_offsets(self, topic: Topic) -> dict[int, int]:
        """The earliest offset by partition."""
        return self._offsets(topic, OffsetSpec.earliest())

    def end_offsets(self, topic: Topic) -> dict[int, int]:
        """The offset after the last committed record, by partition."""
        return self._offsets(topic, OffsetSpec.latest())

    def begin_offsets(self, topic: Topic, begin: Begin) -> dict[int, int]:
        """The start offset by partition.

        ``begin`` is ``earliest``, ``latest``, or the earliest ``_kafka_timestamp`` to read; the
        end offset if no record is as late.
        """
        if begin == "earliest":
            return self.first_offsets(topic)
        ends = self.end_offsets(topic)
        if not isinstance(begin, datetime):
            return ends
        since = OffsetSpec.for_timestamp(round(begin.timestamp() * 1000))
        found = self._offsets(topic, since)
        return {p: ends[p] if offset < 0 else offset for p, offset in found.items()}

    def records_in(
        self, topic: str, partition: int, ranges: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """The offset ranges ``(first, end)`` in which the broker has a record.

        Transaction markers, aborted records and compacted keys use offsets without a record, so
        an offset that is missing in the table is lost only if it is in one of these.

        Raises:
            ServiceUnavailable: The broker does not deliver records.
        """
        consumer, reading = self._consumer(topic, partition)
        found = []
        # There is no record between `here` and the next one.
        here: int | None = None
        record: int | None = -1
        try:
            for first, end in ranges:
                if here is None or first - max(here, record or 0) > _NEAR:
                    consumer.assign([TopicPartition(topic, partition, first)])
                    here, record = first, -1
                while record is not None and record < first:
                    message = self._next(consumer, reading, topic, first)
                    record = None if message is None else message.offset()
                if record is None:
                    break
                if record < end:
                    found.append((first, end))
        finally:
            consumer.close()
        return found

    def messages(self, topic: str, partition: int, first: int, end: int) -> Iterator[Message]:
        """Iterate over the records of a partition from ``first`` to ``end``, exclusive.

        Raises:
            ServiceUnavailable: The broker does not deliver records.
        """
        consumer, reading = self._consumer(topic, partition)
        with closing(consumer):
            consumer.assign([TopicPartition(topic, partition, first)])
            # A message without a value is falsy.
            while (at := self._next(consumer, reading, topic, first)) is not None:
                offset = at.offset()
                if offset is None or offset >= end:
                    return
                yield at

    def _consumer(self, topic: str, partition: int) -> tuple[Consumer, _Reading]:
        """A consumer of a partition's committed records, and its progress."""
        reading = _Reading(topic, partition)
        settings: dict[str, Any] = {
            **self._cluster.settings,
            "group.id": "spark-ingest-verify",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "statistics.interval.ms": _STATISTICS_MS,
            "stats_cb": reading.observe,
        }
        return Consumer(settings), reading

    def _next(
        self, consumer: Consumer, reading: _Reading, topic: str, first: int
    ) -> Message | None:
        """The next record; None at the end. ``first`` is for the error message.

        The consumer skips records of aborted transactions silently, so the timeout is for its
        progress, not for the next record.
        """
        reading.begin()
        while not reading.has_stalled():
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            error = message.error()
            if error is None:
                return message
            if error.name() == "_PARTITION_EOF":
                return None
            # The library looks up the group coordinator, but the group is not used.
            if error.name() != "GROUP_AUTHORIZATION_FAILED":
                raise self._cluster.failure(KafkaException(error), topic)
        raise ServiceUnavailable(
            f"{self._cluster.servers} did not deliver records from offset {first}"
        )

    def _offsets(self, topic: Topic, which: Any) -> dict[int, int]:
        specs = {TopicPartition(topic.name, number): which for number in topic.partitions}
        futures = self._admin.list_offsets(
            specs, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT
        )
        try:
            return {each.partition: self._answer(future).offset for each, future in futures.items()}
        except KafkaException as error:
            raise self._cluster.failure(error, topic.name) from error

    def reader_failure(self, text: str, topic: str) -> MillraceError | None:
        """As :meth:`Cluster.reader_failure`."""
        return self._cluster.reader_failure(text, topic)

    def _answer(self, future: Future[_T]) -> _T:
        return self._cluster.answer(future, self._admin.poll, _TIMEOUT + 1)


def reader_options(
    connections: Connections, topic: Topic, start: Mapping[int, int], max_records: int
) -> dict[str, str]:
    """Options of Spark's streaming Kafka source for one topic.

    ``start`` has the start offset by partition, the earliest if missing; ``max_records`` is the
    maximum number of records in a batch.
    """
    starting = {str(p): start.get(p, _EARLIEST) for p in topic.partitions}
    return {
        **_of_source(consumer_options(connections, len(topic.partitions))),
        "subscribe": topic.name,
        "startingOffsets": json.dumps({topic.name: starting}),
        "maxOffsetsPerTrigger": str(max_records),
        "includeHeaders": "true",
        # Fail instead of skipping expired records.
        "failOnDataLoss": "true",
    }


def range_options(
    connections: Connections, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> dict[str, str]:
    """Options of Spark's Kafka batch source for offset ranges of one topic.

    By partition, ``starts`` has the start offset, 0 if missing, and ``ends`` the end offset,
    exclusive.
    """
    begins = {str(p): starts.get(p, 0) for p in ends}
    return {
        **_of_source(consumer_options(connections, len(ends))),
        # Without partitions that were added meanwhile.
        "assign": json.dumps({topic: sorted(ends)}),
        "startingOffsets": json.dumps({topic: begins}),
        "endingOffsets": json.dumps({topic: {str(p): end for p, end in ends.items()}}),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def consumer_options(connections: Connections, partitions: int) -> dict[str, str]:
    """Options of Kafka's Java consumer for this number of partitions."""
    share = _MOST_FETCHED // max(partitions, 1)
    most = max(min(share, _LARGEST_FETCH), _SMALLEST_FETCH)
    return {**java(connections.kafka), **_FETCH, "max.partition.fetch.bytes": str(most)}


def _of_source(options: Mapping[str, str]) -> dict[str, str]:
    return {f"kafka.{key}": value for key, value in options.items()}
