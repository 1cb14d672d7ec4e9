"""Alerts of streams on a real broker, posted to a receiver on this machine.

Fails when a stream that stands still or lost records is passed over, or a notice comes twice.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.python.stack.conftest import ORDER, Feed, orders, wait_for
from tests.python.stack.test_recover import expire
from tests.python.unit.spark_ingest.alerts.receiver import Receiver, receiving

PATIENT = ("alerts", "--patience", "1s")


@pytest.fixture
def posted(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> Callable[[Receiver], list[Any]]:
    """Looks once, and gives what came of it."""

    def look(receiver: Receiver) -> list[Any]:
        monkeypatch.setenv("ALERTS_WEBHOOK", receiver.url)
        monkeypatch.setenv("ALERTS_FORM", "json")
        before = len(receiver.bodies)
        done = feed.command(*PATIENT)
        assert done.exit_code == 0, done.output
        return [(body["event"], body["kind"], body["subject"]) for body in receiver.bodies[before:]]

    return look


def test_a_stream_that_leaves_records_unread_is_posted_until_it_reads(
    feed: Feed, posted: Callable[[Receiver], list[Any]]
) -> None:
    number, name = feed.register(ORDER), feed.stream.name
    feed.send(*orders(number, 0, 3))
    feed.ingest()
    # Nobody reads what was taken back, and nobody waits for it.
    producer = feed.producer(**{"transactional.id": feed.topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(feed.topic, orders(number, 90, 1)[0], b"k", 0)
    producer.flush(30)
    producer.abort_transaction(30)

    with receiving() as receiver:
        time.sleep(1.1)
        assert posted(receiver) == []
        feed.send(*orders(number, 3, 2))
        time.sleep(1.1)
        assert posted(receiver) == [("began", "stopped stream", name)]
        assert posted(receiver) == []
        feed.ingest()
        assert posted(receiver) == [("over", "stopped stream", name)]

        feed.send(*orders(number, 5, 2))
        expire(feed, 0, feed.services.broker.end_offsets(topic(feed))[0] - 1)
        assert posted(receiver) == [("began", "gap", name)]
        helps = receiver.bodies[-1]["help"]
        assert helps == f"spark-ingest recover {name} --accept-gap --dry-run"
        words = helps.removeprefix("spark-ingest ").removesuffix(" --dry-run").split()
        assert feed.command(*words, "--yes").exit_code == 0
        feed.ingest()
        assert posted(receiver) == [("over", "gap", name)]


def test_a_receiver_that_fails_gets_the_notice_after_the_next_look(
    feed: Feed, posted: Callable[[Receiver], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = feed.stream.name
    feed.register(ORDER)
    feed.send(b"no framing")
    feed.ingest()

    with receiving([404]) as receiver:
        monkeypatch.setenv("ALERTS_WEBHOOK", f"{receiver.url}/secret")
        failed = feed.command(*PATIENT)
        assert failed.exit_code != 0
        assert "secret" not in failed.output + str(failed.exception)
        assert "404" in str(failed.exception)
        assert posted(receiver) == [("began", "quarantine", name)]
        assert posted(receiver) == []


def test_without_a_webhook_it_is_printed_and_without_a_broker_it_says_so(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 1))
    feed.ingest()

    assert "no open alerts" in feed.command("alerts").output
    monkeypatch.setitem(feed.stack.env, "KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    assert "cannot be checked" in feed.command("alerts").output


def topic(feed: Feed) -> Any:
    return feed.services.broker.existing_topic(feed.topic, feed.stream.name)


def test_it_goes_on_looking_while_the_receiver_is_away_and_ends_when_asked(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.register(ORDER)
    feed.send(b"no framing")
    feed.ingest()

    with receiving([500, 500, 500, 200]) as receiver:
        monkeypatch.setenv("ALERTS_WEBHOOK", receiver.url)
        monkeypatch.setenv("ALERTS_FORM", "json")
        ending = threading.Timer(1, lambda: end_when(lambda: len(receiver.bodies) >= 4))
        ending.start()
        done = feed.command(*PATIENT, "--every", "1s")
        ending.join()

    assert done.exit_code == 0, done.output
    # Of streams of other tests, which this project does not have, it says that they are over.
    mine = [b["event"] for b in receiver.bodies if b["subject"] == feed.stream.name]
    assert mine == ["began"] * 4
    assert "500" in done.stderr


def end_when(is_over: Callable[[], bool]) -> None:
    """What Ctrl-C sends, once something is so."""
    wait_for(is_over)
    # The notice is written down after it was taken.
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
