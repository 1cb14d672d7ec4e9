"""A stream under load as a process, a sender that knows what it sent, and the account after.

The sender's own list is the second witness beside `verify`: positions that the broker
confirmed, with the bytes that were sent there.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from confluent_kafka import KafkaError, Message

from sandbox.settings import PROJECT
from tests.python.stack.conftest import ORDER, Feed, proofs
from tests.python.world.avro import framed

PROGRAM = str(Path(sys.executable).parent / "spark-ingest")
# Where `make fault-table` wants the results; without it they are checked and forgotten.
RESULTS = "MILLRACE_FAULT_RESULTS"
SECONDS = 300
Sent = dict[tuple[int, int], bytes | None]
"""What was sent, by partition and offset."""


class Sender:
    """Sends orders, tombstones and junk to both partitions of a feed, until it is stopped."""

    def __init__(self, feed: Feed, rate: float = 300, seed: int = 1, junk: float = 0.05) -> None:
        """Begin to send.

        Args:
            feed: Where to.
            rate: Records per second.
            seed: Which records.
            junk: The share of records that cannot be decoded.
        """
        self._feed = feed
        self._rate = rate
        self._junk = junk
        self._chance = random.Random(seed)
        self._schema_id = feed.register(ORDER)
        self._stopping = threading.Event()
        self.sent: Sent = {}
        self.refused: list[str] = []
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more; returns when the broker has confirmed all."""
        self._stopping.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def _send(self) -> None:
        # Repeats of the producer's own must not look like ours.
        producer = self._feed.producer(**{"enable.idempotence": "true"})
        number = 0
        while not self._stopping.wait(1 / self._rate):
            value = self._value(number)
            producer.produce(
                self._feed.topic, value, b"k", number % 2, on_delivery=self._confirm(value)
            )
            producer.poll(0)
            number += 1
        producer.flush(SECONDS)

    def _value(self, number: int) -> bytes | None:
        kind = self._chance.random()
        if kind < 0.02:
            return None
        if kind < 0.02 + self._junk:
            return b"junk %d" % number
        order = {"id": number, "note": "n" * self._chance.randrange(50)}
        return framed(self._schema_id, ORDER, order)

    def _confirm(self, value: bytes | None) -> Callable[[KafkaError | None, Message], None]:
        def confirm(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is not None or partition is None or offset is None:
                self.refused.append(str(error))
            else:
                self.sent[partition, offset] = value

        return confirm


def send(feed: Feed, *values: bytes | None, partition: int = 0, key: bytes = b"k") -> Sent:
    """Send values; the offsets that the broker gave them."""
    sent: Sent = {}
    producer = feed.producer()
    for value in values:
        reported = confirmed_in(sent, value)
        producer.produce(feed.topic, value, key, partition, on_delivery=reported)
    assert producer.flush(60) == 0
    return sent


def confirmed_in(sent: Sent, value: bytes | None) -> Callable[[object, Message], None]:
    """Keeps the position of a record that the broker confirmed."""

    def reported(error: object, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert error is None
        assert partition is not None
        assert offset is not None
        sent[partition, offset] = value

    return reported


class Ingest:
    """`spark-ingest`, at work on a feed as a process of its own."""

    def __init__(
        self, feed: Feed, *options: str, command: str = "run", manifest: Path | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [PROGRAM, "--manifest", str(manifest or feed.manifest), command, *options],
            cwd=PROJECT,
            env=feed.stack.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def jvms(self) -> list[psutil.Process]:
        """The Java processes that it started."""
        children = psutil.Process(self.pid).children(recursive=True)
        return [child for child in children if "java" in child.name()]

    def batches(self, count: int = 1) -> None:
        """Wait until it has reported of some batches."""
        for line in self.lines(count):
            json.loads(line)

    def lines(self, count: int) -> list[str]:
        """Wait until it has printed some lines."""
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline() for _ in range(count)]
        assert all(lines), f"it ended before line {count}: {self.errors()}"
        return lines

    def is_over(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def kill(self, what: str, jvms: Sequence[psutil.Process] = ()) -> None:
        """Kill the ``python``, its ``jvm``, or ``both``; none of its processes may outlive it.

        ``jvms`` are its Java processes, where there is no time to look for them.
        """
        jvms = jvms or self.jvms()
        if what in ("python", "both"):
            self._process.kill()
        if what in ("jvm", "both"):
            for jvm in jvms:
                jvm.kill()
        _, alive = psutil.wait_procs(jvms, SECONDS)
        assert not alive, "the JVM outlives its Python"
        self._process.wait(SECONDS)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the Python and its JVM."""
        for process in (*self.jvms(), psutil.Process(self.pid)):
            process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end behind its batch."""
        self._process.terminate()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait(SECONDS)

    def errors(self) -> list[str]:
        """What it said of errors, without what the JVM says of itself; it must have ended."""
        self._process.wait(SECONDS)
        assert self._process.stderr is not None
        return [
            line
            for line in self._process.stderr.read().splitlines()
            if line and not line.startswith("WARNING: Using")
        ]

    def close(self) -> None:
        """End it with all that it started."""
        if self._process.poll() is None:
            children = psutil.Process(self.pid).children(recursive=True)
            self._process.kill()
            self._process.wait(SECONDS)
            for child in children:
                if child.is_running():
                    child.kill()
            psutil.wait_procs(children, SECONDS)


@contextmanager
def ingesting(feed: Feed, *options: str) -> Iterator[Ingest]:
    """A stream at work, ended with all it started."""
    process = Ingest(feed, *options)
    try:
        yield process
    except AssertionError:
        process.close()
        print(*process.errors(), sep="\n")
        raise
    finally:
        process.close()


@dataclass(frozen=True)
class Account:
    """What became of what was sent.

    Attributes:
        sent: Records that the broker confirmed.
        lost: Of these, how many are in no table, or with other bytes.
        doubled: Rows too many.
        strange: Rows at positions where nothing was sent.
        proved: Whether `verify` says that every record is there exactly once.
    """

    sent: int
    lost: int
    doubled: int
    strange: int
    proved: bool

    @property
    def is_good(self) -> bool:
        return self.proved and not (self.lost or self.doubled or self.strange)


def account(feed: Feed, sent: Sent) -> Account:
    """Hold the tables against the sender's own list and against `verify`."""
    spark = feed.services.spark
    place = ["_kafka_partition", "_kafka_offset"]
    good = spark.table(feed.table).select(*place, "id", "_is_tombstone").collect()
    bad = (
        spark.table("lake.bronze.quarantine")
        .where(f"_kafka_topic = '{feed.topic}' and replayed_at is null")
        .select(*place, "_kafka_value")
        .collect()
    )
    held: Counter[tuple[int, int]] = Counter()
    right = set()
    for partition, offset, number, is_tombstone in good:
        held[partition, offset] += 1
        value = sent.get((partition, offset))
        if (is_tombstone and value is None) or (value and number == _id(value)):
            right.add((partition, offset))
    for partition, offset, value in bad:
        held[partition, offset] += 1
        if sent.get((partition, offset)) == bytes(value):
            right.add((partition, offset))
    return Account(
        sent=len(sent),
        lost=len(sent.keys() - right),
        doubled=sum(count - 1 for count in held.values()),
        strange=len(held.keys() - sent.keys()),
        proved=all(proof.holds for proof in proofs(feed)),
    )


def go_on(feed: Feed) -> str:
    """Let the stream go on in this process until it has caught up; how it went."""
    batches = feed.ingest()
    rows = sum(batch.rows + batch.quarantined for batch in batches)
    in_batches = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
    return f"started again: {rows:,} record{'' if rows == 1 else 's'} in {in_batches}"


def record(fault: str, done: str, found: Account, went_on: str) -> None:
    """Check an account, and write it down for the table where that is asked for."""
    path = os.environ.get(RESULTS)
    if path is not None:
        row = {"fault": fault, "done": done, "went_on": went_on, **asdict(found)}
        with Path(path).open("a") as file:
            file.write(json.dumps(row) + "\n")
    assert found.sent > 0
    assert found.is_good, found


def _id(value: bytes) -> int | None:
    """The id of a framed order: an Avro int, zigzag, behind five bytes of framing."""
    if value[:1] != b"\0" or value.startswith(b"junk"):
        return None
    number, shift = 0, 0
    for byte in value[5:]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return (number >> 1) ^ -(number & 1)
