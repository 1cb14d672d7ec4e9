"""Query-based capture: what a poll asks, and when it may note how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from typer.testing import CliRunner

from sandbox import cli
from sandbox.databases.columns import Column
from sandbox.databases.known import DATABASES
from sandbox.events import poll, polled_table
from sandbox.events.polled_table import PolledRow, PolledTable
from sandbox.events.sender import DeliveryFailed
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

PAGILA = DATABASES["pagila"]
ADDRESS = PolledTable(PAGILA, PAGILA.table("address"), "last_update")
ROWS = [PolledRow(f'{{"id":{at}}}', "{}", f"2026-01-0{at}") for at in (1, 2, 3)]


class Answers:
    """A connection, and its cursor, that answers a fetch with some of the rows at a time."""

    def __init__(self, *fetched: int) -> None:
        self.statements: list[tuple[str, Any]] = []
        self.rolled_back = 0
        self._fetched = iter(fetched)
        self._number = 0

    @property
    def rowcount(self) -> int:
        return -1

    def cursor(self) -> Answers:
        return self

    def execute(self, statement: str, parameters: Any = None, /) -> None:
        self.statements.append((statement, parameters))

    def fetchall(self) -> list[tuple[str, str, str]]:
        first = self._number
        self._number += next(self._fetched, 0)
        return [(f"key {at}", "{}", f"time {at}") for at in range(first, self._number)]

    def commit(self) -> None: ...

    def rollback(self) -> None:
        self.rolled_back += 1

    def close(self) -> None: ...


class Broker:
    """Producer and group at once; rejects a record on request."""

    def __init__(self, refuses: str | None) -> None:
        self.refuses = refuses
        self.taken: list[str] = []

    def produce(self, _topic: str, _value: str, key: str, on_delivery: Callable[..., None]) -> None:
        if key == self.refuses:
            on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        else:
            self.taken.append(key)

    def poll(self, _seconds: float) -> int:
        return 0

    def flush(self, _seconds: float) -> int:
        return 0


def topic(
    monkeypatch: pytest.MonkeyPatch, refuses: str | None = None
) -> tuple[poll.PollTopic, Broker]:
    broker = Broker(refuses)
    monkeypatch.setattr(poll, "create_topics", lambda *_: None)
    monkeypatch.setattr(poll, "Producer", lambda _: broker)
    monkeypatch.setattr(poll, "Consumer", lambda _: broker)
    return poll.PollTopic(Home(Path("nowhere")), ADDRESS.topic), broker


def test_a_broker_that_has_just_started_is_asked_again_for_the_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, broker = topic(monkeypatch)
    early = [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]

    def committed(places: list[TopicPartition], _seconds: float) -> Any:
        if early:
            raise KafkaException(KafkaError(early.pop()))
        return [TopicPartition(places[0].topic, 0, 0, "then")]

    monkeypatch.setattr(broker, "committed", committed, raising=False)
    monkeypatch.setattr(poll, "_PAUSE_SECONDS", 0)

    assert of.place() == "then"
    assert early == []


def test_a_broker_that_keeps_no_place_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, broker = topic(monkeypatch)

    def committed(_places: object, _seconds: float) -> None:
        raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))

    monkeypatch.setattr(broker, "committed", committed, raising=False)
    for name in ("_PAUSE_SECONDS", "_ANSWER_SECONDS"):
        monkeypatch.setattr(poll, name, 0)

    with pytest.raises(ServiceUnavailable, match="does not store the position"):
        of.place()


def test_a_first_poll_asks_for_all_rows_that_are_old_enough() -> None:
    assert ADDRESS.query(None) == (
        "select json_build_object('address_id', \"address_id\")::text,"
        ' row_to_json(polled)::text, "last_update"::text from "address" as polled'
        " where \"last_update\" <= now() - %(delay)s * interval '1 second'"
        ' order by "last_update", "address_id"'
    )


def test_a_later_poll_asks_for_what_is_newer_than_what_was_seen() -> None:
    assert ' where "last_update" > %(seen)s and "last_update" <= now() - ' in (
        ADDRESS.query("2026-01-01 00:00:00.000001+00")
    )


def test_a_key_of_several_columns_is_named_and_ordered_by_all_of_them() -> None:
    cast = PolledTable(PAGILA, PAGILA.table("film_actor"), "last_update")

    query = cast.query(None)

    assert "json_build_object('actor_id', \"actor_id\", 'film_id', \"film_id\")" in query
    assert query.endswith('order by "last_update", "actor_id", "film_id"')


def test_rows_are_fetched_until_there_is_none_and_the_transaction_ends() -> None:
    answers = Answers(2, 1)

    found = list(ADDRESS.rows(answers, "then", 5))

    assert [row.updated_at for row in found] == ["time 0", "time 1", "time 2"]
    assert answers.statements[0][1] == {"seen": "then", "delay": 5}
    assert answers.rolled_back == 1


def test_the_transaction_ends_also_where_rows_are_left() -> None:
    answers = Answers(2, 1)
    rows = ADDRESS.rows(answers, None, 0)
    assert isinstance(rows, Iterator)
    next(rows)

    del rows

    assert answers.rolled_back == 1


def test_a_column_that_is_no_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = (None, None, None, None, False, False)
    columns = [
        Column("phone", "text", *facts),
        Column("last_update", "timestamp with time zone", *facts),
    ]
    monkeypatch.setattr(polled_table, "columns_of", lambda *_: columns)
    wrong = PolledTable(PAGILA, PAGILA.table("address"), "phone")

    ADDRESS.check(Answers())
    with pytest.raises(ConfigurationError, match="its timestamps: last_update"):
        wrong.check(Answers())


def test_the_place_is_that_of_the_last_row_when_all_were_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, broker = topic(monkeypatch)

    assert made.send(ROWS) == (3, "2026-01-03")
    assert broker.taken == [row.key for row in ROWS]
    assert made.send([]) == (0, None)


def test_a_record_that_is_refused_ends_the_poll_without_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, broker = topic(monkeypatch, refuses=ROWS[1].key)

    with pytest.raises(DeliveryFailed, match=r"1 records were not delivered: .*again"):
        made.send(ROWS)
    assert broker.taken == [ROWS[0].key]


def test_an_unknown_table_is_rejected_with_the_known_ones() -> None:
    done = CliRunner().invoke(cli.app, ["poll", "ecomm.sale"])

    assert isinstance(done.exception, ConfigurationError)
    assert "ecomm.sale cannot be polled; known: moma.artists" in str(done.exception)
