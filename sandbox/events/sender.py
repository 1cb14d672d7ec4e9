"""Produce records to the topics of streams, at full speed or at a given rate."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from sandbox.events.schema_ids import schema_ids
from sandbox.services.security import PRODUCER, kafka_properties
from sandbox.settings import Home
from sandbox.streams import Stream
from sandbox.streams.timeline import Record
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

_ANSWER_SECONDS = 8.0
_CHUNK = 2_000
_TICK_SECONDS = 0.02
# Longer than the producer itself tries (message.timeout.ms).
FLUSH_SECONDS = 25.0

# The partitioner of Java clients (murmur2), so that a key is in the same partition whichever
# client sends it. Idempotence: no duplicates, no reordering.
DELIVERY: Mapping[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "linger.ms": 20,
    # If the broker is down for longer, delivery fails.
    "message.timeout.ms": 20_000,
    "delivery.report.only.error": True,
    "log_level": 0,
}
_PRODUCER = {
    **DELIVERY,
    "batch.size": 1 << 20,
    "batch.num.messages": 20_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 1 << 20,
}


class DeliveryFailed(MillraceError):
    """Some records were not delivered."""


@dataclass
class DeliveryReport:
    """The delivery report of one run.

    Attributes:
        kinds: Produced events by kind.
        beside: Other produced records, by topic.
        refused: Records that were not delivered.
        reason: The error of the first of them.
        seconds: From the first record to the last acknowledgement.
        interrupted: Stopped by Ctrl-C.
        broker_gone: The broker stopped responding; records that it wrote last may be counted
            as refused.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    beside: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    reason: str = ""
    seconds: float = 0.0
    interrupted: bool = False
    broker_gone: bool = False

    @property
    def events(self) -> int:
        return self.kinds.total()

    @property
    def produced(self) -> int:
        return self.events + self.beside.total()

    @property
    def delivered(self) -> int:
        return self.produced - self.refused

    @property
    def rate(self) -> float:
        """Delivered records per second."""
        return self.delivered / self.seconds if self.seconds else 0.0


class StreamProducer:
    """A producer for the topics of ``stream`` and of the streams ``beside`` it.

    The constructor checks that broker, topics and registry are available.

    Attributes:
        schema_ids: The registry's ids of each stream's key and value schema, by the
            stream's name.

    Raises:
        ServiceUnavailable: Broker or registry is down.
        ConfigurationError: A topic is missing, or the registry rejects a schema.
    """

    def __init__(self, home: Home, stream: Stream, *beside: Stream) -> None:
        self.stream = stream
        self._broker = home.bootstrap_servers
        self._client = kafka_properties(home, PRODUCER)
        streams = (stream, *beside)
        partitions = _partitions(home, [one.topic for one in streams])
        self._partitions = partitions[stream.topic]
        self.schema_ids = {one.name: schema_ids(home, one) for one in streams}
        self._producer = Producer({**self._client, **_PRODUCER})

    def records_so_far(self) -> int:
        """Number of records ever written to the events' topic: the sum of its end offsets."""
        client = Consumer({**self._client, "group.id": "sandbox", "log_level": 0})
        end = 0
        try:
            for number in self._partitions:
                place = TopicPartition(self.stream.topic, number)
                end += client.get_watermark_offsets(place, timeout=_ANSWER_SECONDS)[1]
        except KafkaException as error:
            raise _broker_down(self._broker, error) from error
        finally:
            client.close()
        return end

    def send(
        self,
        records: Iterator[Record],
        rate: float | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> DeliveryReport:
        """Produce all records and wait until they are delivered.

        Stops early on Ctrl-C and after a failed delivery, and then flushes the producer.

        Args:
            records: The records, in order. A negative timestamp means now.
            rate: Events per second, spread evenly; None sends as fast as possible.
            on_progress: Called regularly with the number of produced events.
        """
        report = DeliveryReport()
        began = time.monotonic()
        try:
            if rate is None:
                self._send_fast(records, report, on_progress)
            else:
                self._send_paced(records, rate, report, on_progress)
        except KeyboardInterrupt:
            report.interrupted = True
        except KafkaException as error:
            report.reason = report.reason or _reason(error)
            report.refused += 1
        except BaseException:
            # The record source failed: deliver the records before it.
            self._producer.flush(FLUSH_SECONDS)
            raise
        self._finish(report)
        report.seconds = time.monotonic() - began
        on_progress(report.events)
        return report

    def _send_fast(
        self, records: Iterator[Record], report: DeliveryReport, on_progress: Callable[[int], None]
    ) -> None:
        while chunk := list(islice(records, _CHUNK)):
            self._produce(chunk, report)
            on_progress(report.events)
            if report.refused:
                return

    def _send_paced(
        self,
        records: Iterator[Record],
        rate: float,
        report: DeliveryReport,
        on_progress: Callable[[int], None],
    ) -> None:
        began = time.monotonic()
        while not report.refused:
            due = 1 + int((time.monotonic() - began) * rate) - report.events
            if due > 0:
                chunk = up_to(records, min(due, _CHUNK))
                if not chunk:
                    return
                self._produce(chunk, report)
                on_progress(report.events)
            if due < _CHUNK:
                next_due = began + report.events / rate - time.monotonic()
                time.sleep(min(0.2, max(_TICK_SECONDS, next_due)))
                self._producer.poll(0)

    def _produce(self, chunk: list[Record], report: DeliveryReport) -> None:
        producer, topic = self._producer, self.stream.topic

        def refused(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                report.refused += 1
                if error.name() == "_MSG_TIMED_OUT":
                    report.broker_gone = True
                    report.reason = report.reason or "the broker stopped answering"
                report.reason = report.reason or error.str()

        with _CtrlC() as ctrl_c:
            for key, value, timestamp, kind, beside in chunk:
                stamp = max(timestamp, 0)
                while True:
                    try:
                        producer.produce(
                            beside or topic, value, key, on_delivery=refused, timestamp=stamp
                        )
                        break
                    except BufferError:
                        ctrl_c.check()
                        producer.poll(0.05)
                if beside:
                    report.beside[beside] += 1
                else:
                    report.kinds[kind] += 1
        producer.poll(0)

    def _finish(self, report: DeliveryReport) -> None:
        """Flush the producer; a second Ctrl-C aborts."""
        if report.broker_gone:
            # The broker is gone: do not wait for another timeout.
            self._producer.purge()
        try:
            left = self._producer.flush(FLUSH_SECONDS)
        except KeyboardInterrupt:
            report.interrupted = True
            left = len(self._producer)
        if left:
            report.refused += left
            report.reason = report.reason or "no answer from the broker"
            self._producer.purge()


class _CtrlC:
    """Delays Ctrl-C until the current record is produced and counted."""

    def __init__(self) -> None:
        self._came = False
        # Passed on to the previous handler: Python's own, or that of PySpark. An ignored
        # Ctrl-C stays ignored. Other threads are never interrupted.
        handler = signal.getsignal(signal.SIGINT)
        in_main = threading.current_thread() is threading.main_thread()
        self._handler = handler if in_main and callable(handler) else None

    def __enter__(self) -> _CtrlC:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if failed is None:
            self.check()

    def check(self) -> None:
        """Pass a pending Ctrl-C to its handler, which raises KeyboardInterrupt."""
        if self._came and self._handler is not None:
            self._came = False
            self._handler(signal.SIGINT, None)

    def _note(self, *_: object) -> None:
        self._came = True


def check_delivery(stream: Stream, report: DeliveryReport) -> None:
    """Raise an error if records were not delivered.

    Raises:
        DeliveryFailed: With the topics, the number of records and the first error.
    """
    if report.refused:
        topics = ", ".join((stream.topic, *report.beside))
        raise DeliveryFailed(
            f"{topics}: {report.refused:,} of {report.produced:,} records were not"
            f" delivered: {report.reason}; look at `sandbox status` and `sandbox logs kafka`"
        )


def up_to(records: Iterator[Record], events: int) -> list[Record]:
    """The next records, up to this number of events, or all remaining ones."""
    chunk: list[Record] = []
    for record in records:
        chunk.append(record)
        events -= not record.beside
        if not events:
            break
    return chunk


def _partitions(home: Home, wanted: list[str]) -> dict[str, list[int]]:
    # Probe first: librdkafka would retry a closed port until its timeout.
    try:
        socket.create_connection(("127.0.0.1", home.ports["kafka"]), 2).close()
        admin = AdminClient({**kafka_properties(home, PRODUCER), "log_level": 0})
        # All topics: a request for one by name could create it.
        topics = admin.list_topics(timeout=_ANSWER_SECONDS).topics
    except (OSError, KafkaException) as error:
        raise _broker_down(home.bootstrap_servers, error) from error
    for topic in wanted:
        if topic not in topics:
            raise ConfigurationError(
                f"topic {topic} does not exist on {home.bootstrap_servers}; `sandbox up` creates it"
            )
    return {topic: sorted(topics[topic].partitions) for topic in wanted}


def _broker_down(address: str, error: Exception) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"no Kafka broker answers at {address} ({_reason(error)}); start it with `sandbox up`"
    )


def _reason(error: Exception) -> str:
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return error.args[0].str()
    return str(error)
