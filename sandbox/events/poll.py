"""`sandbox poll`: query-based capture of the rows of a table that changed since the last poll.

It works like Kafka Connect's JDBC source connector in timestamp mode.
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
# Errors of a broker that has just started: the group has no coordinator yet.
_TOO_EARLY = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
_PAUSE_SECONDS = 0.2

Answer = TypeVar("Answer")


class PollTopic:
    """The topic of a polled table, and the position of the polls.

    The position is stored in the committed offsets of a consumer group, after all rows before
    it are delivered. If the program is killed in between, these rows are sent again: delivery
    is at least once. The broker must run; a missing topic is created.

    Raises:
        ServiceUnavailable: The broker is down.
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
        """The committed position, a timestamp; None if there is none."""
        (found,) = self._asked(
            lambda: self._group.committed([TopicPartition(self.name, 0)], _ANSWER_SECONDS)
        )
        return found.metadata or None

    def note(self, place: str) -> None:
        """Commit a timestamp as the position, when all rows up to it are delivered.

        Must be called with every poll: Kafka expires offsets after a week.
        """
        # Only the metadata of the offset matters: polls consume no records.
        offset = TopicPartition(self.name, 0, 0, place)
        self._asked(lambda: self._group.commit(offsets=[offset], asynchronous=False))

    def send(self, rows: Iterable[PolledRow]) -> tuple[int, str | None]:
        """Produce rows, and wait until all are delivered.

        Returns:
            The number of rows, and the timestamp of the last one; None if there was none.

        Raises:
            DeliveryFailed: Some records were not delivered.
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
        """Call the group coordinator, retrying until there is one."""
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
            f"the Kafka broker at {self._broker} does not store the position of {self.name}"
            f" ({error.args[0].str()}): `sandbox status`"
        )


def poll(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help=f"The table: {', '.join(POLLABLE)}.")
    ],
    column: Annotated[
        str, typer.Option(help="The timestamp column that every change of a row updates.")
    ] = "last_update",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between polls.")] = DEFAULT_SECONDS,
    delay: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Minimum age of a row in seconds. Must be longer than any transaction that"
            " writes the table: rows that are committed later are never read.",
        ),
    ] = DEFAULT_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="Poll once and exit.")] = False,
) -> None:
    """Send the rows of a table that changed since the last poll, until Ctrl-C.

    Query-based capture of a PostgreSQL table: no log is read, and the database
    only needs a column with the time of the last change. A poll is

      select ... where last_update > (the newest one seen)
      and last_update <= now() - (the delay) order by last_update, (the key)

    and each row becomes a JSON record in the topic DATABASE.poll.TABLE, which is
    created if missing. The first poll sends the whole table. The position is
    committed to Kafka after each poll: after a crash some rows are sent again,
    and none is lost.

    It does not capture deletes; all but the last of several changes between two
    polls; changes that do not update the column; and rows whose transaction took
    longer than the delay. See docs/query-based-capture.md.

      sandbox up kafka registry postgres
      sandbox poll pagila.address --once      send the changes so far
      sandbox poll pagila.address             every five seconds, until Ctrl-C
      sandbox poll pagila.film --every 60 --delay 30

    Ctrl-C stops it after the current poll. Exit codes: 0 success, 1 delivery
    failed or database error, 2 usage error or services down.
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
