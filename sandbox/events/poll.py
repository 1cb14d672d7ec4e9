"""`sandbox poll`: query-based capture, the rows of a table that changed since the last look.

What Kafka Connect's JDBC source does in its timestamp mode, in a program of this sandbox.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Annotated, TypeVar

import typer
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from sandbox import ui
from sandbox.databases.run import ctrl_c_noted
from sandbox.databases.server import opened
from sandbox.events.polled_table import POLLABLE, PolledRow, PolledTable
from sandbox.events.sender import DELIVERY, FLUSH_SECONDS, DeliveryFailed
from sandbox.services.kafka import create_topics
from sandbox.services.security import PRODUCER, kafka_properties
from sandbox.settings import Home, load_home
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

DEFAULT_SECONDS = 5.0
_PARTITIONS = 2
_ANSWER_SECONDS = 10.0
# What a broker says that has just started: nobody keeps the group's offsets yet.
_TOO_EARLY = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
_PAUSE_SECONDS = 0.2

Answer = TypeVar("Answer")


class PollTopic:
    """The topic of a polled table, and with it how far the polls are.

    The place is kept by Kafka beside the topic, where consumers keep their offsets, and is noted
    only when the broker has all rows before it. A program that is killed in between sends
    these rows again: none is lost. The broker runs; a topic that is missing is created.

    Raises:
        ServiceUnavailable: The broker does not answer.
        MillraceError: The topic cannot be created.
    """

    def __init__(self, home: Home, topic: str) -> None:
        self.name = topic
        self._broker = home.bootstrap_servers
        create_topics(home, {topic: _PARTITIONS})
        client = kafka_properties(home, PRODUCER)
        self._producer = Producer({**client, **DELIVERY})
        self._group = Consumer({**client, "group.id": f"poll.{topic}", "log_level": 0})

    def close(self) -> None:
        self._producer.purge()
        self._group.close()

    def place(self) -> str | None:
        """The time that was noted last; None when there is none."""
        (found,) = self._asked(
            lambda: self._group.committed([TopicPartition(self.name, 0)], _ANSWER_SECONDS)
        )
        return found.metadata or None

    def note(self, place: str) -> None:
        """Keep a time as the place, when all rows up to it are delivered.

        To be done with every poll: Kafka forgets what nobody noted for a week.
        """
        # The words beside the offset are what counts: polls read no record.
        offset = TopicPartition(self.name, 0, 0, place)
        self._asked(lambda: self._group.commit(offsets=[offset], asynchronous=False))

    def send(self, rows: Iterable[PolledRow]) -> tuple[int, str | None]:
        """Send rows, and wait until the broker has all of them.

        Returns:
            How many there were, and the time of the last one; None when there was none.

        Raises:
            DeliveryFailed: The broker did not take some of them.
        """
        refused: list[str] = []

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                refused.append(error.str())

        sent, last = 0, None
        for row in rows:
            while True:
                try:
                    self._producer.produce(self.name, row.value, row.key, on_delivery=report)
                    break
                except BufferError:
                    self._producer.poll(0.05)
            self._producer.poll(0)
            sent, last = sent + 1, row.updated_at
            if refused:
                break
        left = self._producer.flush(FLUSH_SECONDS)
        if refused or left:
            reason = refused[0] if refused else "no answer from the broker"
            raise DeliveryFailed(
                f"{self.name}: {len(refused) + left:,} records were not delivered: {reason};"
                " the next `sandbox poll` sends these rows again"
            )
        return sent, last

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """What the group's coordinator answers, as soon as there is one."""
        end = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                return ask()
            except KafkaException as error:
                is_late = time.monotonic() > end
                if is_late or error.args[0].code() not in _TOO_EARLY:
                    raise self._silent(error) from error
            time.sleep(_PAUSE_SECONDS)

    def _silent(self, error: KafkaException) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"the Kafka broker at {self._broker} does not keep the place of {self.name}"
            f" ({error.args[0].str()}): `sandbox status`"
        )


def poll(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"Which: {', '.join(POLLABLE)}.")],
    column: Annotated[
        str, typer.Option(help="The timestamp that each change of a row sets.")
    ] = "last_update",
    every: Annotated[
        float, typer.Option(min=0.1, help="Seconds from one poll to the next.")
    ] = DEFAULT_SECONDS,
    delay: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Seconds that a row must be old. Longer than any transaction that writes"
            " the table: what commits later than that is never read.",
        ),
    ] = DEFAULT_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="Poll once, and end.")] = False,
) -> None:
    """Send the rows of a table that changed since the last poll, until Ctrl-C.

    Query-based capture of a table in PostgreSQL: no log is read, and the
    database needs nothing but a column that says when a row changed. A poll is

      select ... where last_update > (the newest one seen)
      and last_update <= now() - (the delay) order by last_update, (the key)

    and each row that it finds a JSON record of the topic DATABASE.poll.TABLE,
    which is created when it is missing. The first poll sends the whole table.
    How far it is is noted in Kafka behind each poll: a program that is killed
    sends some rows again and loses none.

    It sees no delete; of several changes between two polls the last alone; no
    change that leaves the column as it was; and no row whose transaction took
    longer than the delay. docs/query-based-capture.md says what follows.

      sandbox up kafka registry postgres
      sandbox poll pagila.address --once      what changed until now
      sandbox poll pagila.address             every five seconds, until Ctrl-C
      sandbox poll pagila.film --every 60 --delay 30

    Ctrl-C finishes the poll at work. Exit codes: 0 ended as asked, 1 the broker
    did not take all rows, or the database refuses, 2 wrong use or no services.
    """
    if table not in POLLABLE:
        raise ConfigurationError(f"{table} cannot be polled; known: {', '.join(POLLABLE)}")
    polled = PolledTable(*POLLABLE[table], column)
    home = load_home()
    with opened(home, polled.database) as connection, ctrl_c_noted() as interrupted:
        polled.check(connection)
        with closing(PollTopic(home, polled.topic)) as topic:
            seen = topic.place()
            while True:
                sent, last = topic.send(polled.rows(connection, seen, delay))
                seen = last or seen
                if seen is not None:
                    topic.note(seen)
                if sent or once:
                    ui.echo(_summary(polled, sent, seen))
                if once or interrupted.wait(every):
                    return


def _summary(polled: PolledTable, sent: int, seen: str | None) -> str:
    upto = f", up to {polled.column} {seen}" if seen else ""
    return f"{sent:,} rows of {polled.name} to {polled.topic}{upto}"
