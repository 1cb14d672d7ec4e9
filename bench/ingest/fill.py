"""Fill a topic, from several processes, or send at a steady rate, what was encoded before."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Self

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.ingest.load import Sent, Shape, payloads, records
from spark_ingest.errors import MillraceError

_PRODUCER: dict[str, str | int | float | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 50,
    "batch.size": 1 << 20,
    "batch.num.messages": 20_000,
    "queue.buffering.max.messages": 300_000,
    "queue.buffering.max.kbytes": 1 << 20,
    "delivery.report.only.error": True,
    "log_level": 0,
}
_HEADERS: list[tuple[str, str | bytes | None]] = [("till", b"front")]
_FLUSH_SECONDS = 120.0


class NotSent(MillraceError):
    """The broker did not take all records of the benchmark."""


@dataclass(frozen=True)
class Filling:
    """What goes into a topic.

    Attributes:
        servers: The broker.
        topic: Its name.
        partitions: How many.
        shape: How the records look.
        ids: The registry's ids of the older and the newer schema.
    """

    servers: str
    topic: str
    partitions: int
    shape: Shape
    ids: tuple[int, int]


def make_topic(servers: str, topic: str, partitions: int) -> None:
    """Make a topic that keeps its records."""
    config = {"retention.ms": "-1", "segment.bytes": str(256 << 20)}
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result()


def fill(filling: Filling, count: int, processes: int) -> Sent:
    """Send so many records, each partition getting as many as the others.

    Raises:
        NotSent: Some did not arrive.
    """
    make_topic(filling.servers, filling.topic, filling.partitions)
    share = count // processes
    firsts = [share * worker for worker in range(processes)]
    counts = [share] * (processes - 1) + [count - share * (processes - 1)]
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = pool.map(_send, [filling] * processes, firsts, counts)
        return sum(parts, Sent())


def _send(filling: Filling, first: int, count: int) -> Sent:
    producer = Producer({"bootstrap.servers": filling.servers, **_PRODUCER})
    refused: list[str] = []
    kinds: Counter[str] = Counter()
    size = 0
    pool = payloads(filling.shape, first, filling.ids)
    for number, key, value, kind in records(pool, first, count):
        while True:
            try:
                producer.produce(
                    filling.topic,
                    value,
                    key,
                    number % filling.partitions,
                    headers=_HEADERS if number % 2 else None,
                    on_delivery=lambda error, _: refused.append(str(error)),
                )
                break
            except BufferError:
                producer.poll(0.05)
        kinds[kind] += 1
        size += len(value or b"")
        if number % 5000 == 0:
            producer.poll(0)
    left = producer.flush(_FLUSH_SECONDS)
    if left or refused:
        why = refused[0] if refused else "no answer"
        raise NotSent(
            f"{left + len(refused)} of {count} records did not get into {filling.topic}: {why}"
        )
    return Sent(count, size, kinds)


# Topic, partition, key and value.
Record = tuple[str, int, bytes, bytes | None]


class Sender:
    """Sends records at a steady rate for as long as its block lasts.

    Args:
        servers: The broker.
        rate: Records a second, all in all.
        record: Makes each by its number, just before it is handed to the producer.

    Attributes:
        sent: How many so far.
    """

    def __init__(self, servers: str, rate: float, record: Callable[[int], Record]) -> None:
        self.sent = 0
        self._servers = servers
        self._rate = rate
        self._record = record
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _send(self) -> None:
        settings = {"bootstrap.servers": self._servers, "linger.ms": 5}
        producer = Producer({**settings, "log_level": 0})
        began = time.monotonic()
        while not self._stopping.is_set():
            while self.sent < (time.monotonic() - began) * self._rate:
                topic, partition, key, value = self._record(self.sent)
                producer.produce(topic, value, key, partition)
                self.sent += 1
            producer.poll(0)
            time.sleep(0.004)
        producer.flush(30)
