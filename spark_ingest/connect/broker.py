"""What Kafka says: topics, their identity and offsets, and how Spark reads them."""

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
# Kafka's UUID of zeros: what a broker says that knows of none.
_NO_ID = "A" * 22
# To read so many offsets on is faster than to begin at another one.
_NEAR = 5000
_EARLIEST = -2
_T = TypeVar("_T")

# Fetch in large pieces: with the defaults a local read waits more than it works.
_FETCH = {
    "max.poll.records": "20000",
    # Spark's source asks for a partition's ends behind every poll. A broker answers in turn, so
    # that waits until the fetch before it has its records: half a second for what came last.
    "fetch.max.wait.ms": "10",
    "fetch.max.bytes": str(64 * 1024 * 1024),
    # Records of aborted transactions were never sent.
    "isolation.level": "read_committed",
}

# Spark keeps a consumer for each partition, and each consumer the records of its last fetch and
# the next fetch as well, also while nothing is read: what all partitions fetch is bounded.
_MOST_FETCHED = 64 * 1024 * 1024
_LARGEST_FETCH = 8 * 1024 * 1024
_SMALLEST_FETCH = 256 * 1024


# Where a table without a commit begins: a point in time, or an end of the topic.
Begin = Literal["earliest", "latest"] | datetime


@dataclass(frozen=True)
class Topic:
    """A topic as it is now.

    Attributes:
        id: Kafka's UUID of it: a topic that is deleted and recreated has another.
        partitions: Partition numbers.
    """

    name: str
    id: str
    partitions: tuple[int, ...]


class _Reading:
    """Whether a consumer of one partition gets on, by librdkafka's statistics."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = str(partition)
        self._next = -1
        self._since = time.monotonic()

    def begin(self) -> None:
        """Count from now."""
        self._since = time.monotonic()

    def observe(self, statistics: str) -> None:
        """Take librdkafka's statistics; called while it is polled."""
        topics = json.loads(statistics).get("topics", {})
        partitions = topics.get(self._topic, {}).get("partitions", {})
        following = partitions.get(self._partition, {}).get("next_offset", self._next)
        if following != self._next:
            self._next = following
            self._since = time.monotonic()

    def has_stalled(self) -> bool:
        """Whether nothing was read for long."""
        return time.monotonic() - self._since > _TIMEOUT


class Broker:
    """Asks a Kafka cluster about topics, and reads what Spark cannot."""

    def __init__(self, connections: Connections) -> None:
        self._cluster = Cluster(connections)
        try:
            self._admin = AdminClient(self._cluster.settings)
        except KafkaException as error:
            raise ConfigurationError(
                f"kafka in profiles/ingest.yml is not understood: {error.args[0].str()}"
            ) from error

    def topic(self, name: str) -> Topic | None:
        """The topic with this name, or None when there is none.

        Raises:
            ConfigurationError: The cluster does not let us in, or not at this topic, or gives
                topics no ids.
            ServiceUnavailable: No broker answers.
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
        # Reading is found out to be forbidden only while Spark reads: too late for one line.
        allowed = described.authorized_operations
        if allowed and AclOperation.READ not in allowed:
            raise self._cluster.no_right(name, "topic", "READ")
        partitions = tuple(sorted(partition.id for partition in described.partitions))
        topic_id = str(described.topic_id)
        if topic_id == _NO_ID:
            raise ConfigurationError(
                f"{self._cluster.servers} gives topic {name} no id, without which a recreated "
                "topic looks the same: brokers give one from Kafka 2.8 on, with an "
                "inter.broker.protocol.version of 2.8 or newer"
            )
        return Topic(name, topic_id, partitions)

    def existing_topic(self, name: str, needed_by: str) -> Topic:
        """Like :meth:`topic`, for a topic that must be there.

        Raises:
            ConfigurationError: It does not exist.
            ServiceUnavailable: No broker answers.
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
        """Create a topic that does not exist yet, with as many replicas as the cluster gives.

        ``config`` is its own settings; one that exists keeps what it has.

        Raises:
            ConfigurationError: The cluster does not let us.
            ServiceUnavailable: No broker answers.
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
        """By partition, the offset of the oldest record that the broker still has."""
        return self._offsets(topic, OffsetSpec.earliest())

    def end_offsets(self, topic: Topic) -> dict[int, int]:
        """By partition, the offset behind the last committed record."""
        return self._offsets(topic, OffsetSpec.latest())

    def begin_offsets(self, topic: Topic, begin: Begin) -> dict[int, int]:
        """By partition, the offset of the first record from some time on.

        ``begin`` is ``earliest``, ``latest``, or the earliest ``_kafka_timestamp`` to take;
        where no record is as late, the end.
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
        """Those of some offset ranges ``(first, end)`` in which the broker has a record.

        Transaction markers, aborted records and compacted keys use offsets without being
        records, so an offset that no table holds is lost only if it is in one of these.

        Raises:
            ServiceUnavailable: The broker does not deliver.
        """
        consumer, reading = self._consumer(topic, partition)
        found = []
        # Between here and the next record, if there is one, lies none.
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
        """The records of a partition from one offset to before another, one by one.

        Raises:
            ServiceUnavailable: The broker does not deliver.
        """
        consumer, reading = self._consumer(topic, partition)
        with closing(consumer):
            consumer.assign([TopicPartition(topic, partition, first)])
            # A message without a value is false.
            while (at := self._next(consumer, reading, topic, first)) is not None:
                offset = at.offset()
                if offset is None or offset >= end:
                    return
                yield at

    def _consumer(self, topic: str, partition: int) -> tuple[Consumer, _Reading]:
        """A consumer of a partition's committed records, and how it gets on."""
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
        """The next record, at or behind an offset or not; None at the end.

        Records of an aborted transaction are passed over without a word, for as long as that
        takes: what counts is that the reader gets on.
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
            # The library asks for its group's coordinator; we read as nobody's group.
            if error.name() != "GROUP_AUTHORIZATION_FAILED":
                raise self._cluster.failure(KafkaException(error), topic)
        raise ServiceUnavailable(
            f"{self._cluster.servers} did not deliver records from offset {first}"
        )

    def _offsets(self, topic: Topic, which: Any) -> dict[int, int]:
        asked = {TopicPartition(topic.name, number): which for number in topic.partitions}
        futures = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT
        )
        try:
            return {
                place.partition: self._answer(future).offset for place, future in futures.items()
            }
        except KafkaException as error:
            raise self._cluster.failure(error, topic.name) from error

    def reader_failure(self, text: str, topic: str) -> MillraceError | None:
        """What an error of Spark's reader means: the cluster is away, or does not let it in."""
        return self._cluster.reader_failure(text, topic)

    def _answer(self, future: Future[_T]) -> _T:
        return self._cluster.answer(future, self._admin.poll, _TIMEOUT + 1)


def reader_options(
    connections: Connections, topic: Topic, start: Mapping[int, int], max_records: int
) -> dict[str, str]:
    """Options of Spark's Kafka source for one topic.

    ``start`` has the first offset to read, by partition: the earliest for one that is missing.
    ``max_records`` is the most in a batch.
    """
    starting = {str(p): start.get(p, _EARLIEST) for p in topic.partitions}
    return {
        **_of_source(consumer_options(connections, len(topic.partitions))),
        "subscribe": topic.name,
        "startingOffsets": json.dumps({topic.name: starting}),
        "maxOffsetsPerTrigger": str(max_records),
        "includeHeaders": "true",
        # Never skip what is gone: stop and say so.
        "failOnDataLoss": "true",
    }


def range_options(
    connections: Connections, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> dict[str, str]:
    """Options of Spark's Kafka source, not streaming, for some offsets of one topic.

    By partition, ``starts`` has the first offset, 0 for one that is missing, and ``ends`` the
    offset behind the last one.
    """
    begins = {str(p): starts.get(p, 0) for p in ends}
    return {
        **_of_source(consumer_options(connections, len(ends))),
        # The topic may have got partitions meanwhile, which are not asked for.
        "assign": json.dumps({topic: sorted(ends)}),
        "startingOffsets": json.dumps({topic: begins}),
        "endingOffsets": json.dumps({topic: {str(p): end for p, end in ends.items()}}),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def consumer_options(connections: Connections, partitions: int) -> dict[str, str]:
    """A consumer's options, of Kafka's Java client, that read so many partitions."""
    share = _MOST_FETCHED // max(partitions, 1)
    most = max(min(share, _LARGEST_FETCH), _SMALLEST_FETCH)
    return {**java(connections.kafka), **_FETCH, "max.partition.fetch.bytes": str(most)}


def _of_source(options: Mapping[str, str]) -> dict[str, str]:
    return {f"kafka.{key}": value for key, value in options.items()}
