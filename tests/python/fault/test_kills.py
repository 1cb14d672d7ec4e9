"""A stream under load is killed at observed moments: nothing is lost, nothing is doubled.

Fails when a stream killed at an observed moment loses or doubles a record.
"""

from __future__ import annotations

import random
import signal
import time
from typing import Any

import psutil
import pytest

from spark_ingest.streaming import tables
from tests.python.fault.harness import Ingest, Sender, Sent, account, go_on, ingesting, record, send
from tests.python.fault.moments import Begun, Moments
from tests.python.stack.conftest import ORDER, Feed, orders
from tests.python.world.avro import framed

RUN = ("--every", "500ms", "--max-batch", "2000")
# What one looks for, what is killed, how people call it.
KILLS = [
    ("reads", "python", "while Kafka is read"),
    ("staged", "both", "after the files are staged"),
    ("staged", "jvm", "after the files are staged"),
    ("set_aside", "python", "after the quarantine commit"),
    ("set_aside", "jvm", "after the quarantine commit"),
    ("published", "both", "after the bronze commit, before the log's row"),
    ("writes", "both", "after the data files are written, before their commit"),
]
WHO = {"python": "the Python", "jvm": "the JVM", "both": "both"}


def kill_at(process: Ingest, moments: Moments, moment: str, what: str) -> Begun:
    """Kill a stream when a moment of one of its batches has come; that batch's begin."""
    batch = moments.begin()

    def has_come() -> bool:
        nonlocal batch
        if getattr(batch, moment)():
            return True
        if batch.main_has_moved():
            # The batch is over: look at the next one.
            batch = moments.begin()
        return False

    moments.wait(has_come)
    process.kill(what)
    return batch


@pytest.mark.long
@pytest.mark.parametrize(("moment", "what", "words"), KILLS)
def test_killed_at_a_moment_of_a_batch(feed: Feed, moment: str, what: str, words: str) -> None:
    # A stream writes the data files itself where the batch before had no junk.
    sender = Sender(feed, junk=0 if moment == "writes" else 0.05)
    moments = Moments(feed.stack.home, feed.stream.table)
    tables.create_tables(feed.services, [feed.stream])
    for _ in range(5):
        with ingesting(feed, *RUN) as process:
            process.batches(2)
            batch = kill_at(process, moments, moment, what)
            if what == "jvm":
                assert process.wait() == 1
                said = process.errors()
                assert len(said) == 1, said
                assert "JVM" in said[0]
        # The kill may come too late: the batch was published all the same.
        if batch.main_has_moved() == (moment == "published"):
            break
    else:
        pytest.fail("the batch was over each time")
    sender.stop()
    went_on = go_on(feed)
    done = f"SIGKILL to {WHO[what]}"
    record(f"Killed {words}", done, account(feed, sender.sent), went_on)


@pytest.mark.long
def test_killed_while_it_cleans_up_what_an_earlier_kill_left(feed: Feed) -> None:
    sender, moments = Sender(feed), Moments(feed.stack.home, feed.stream.table)
    tables.create_tables(feed.services, [feed.stream])
    for _ in range(5):
        with ingesting(feed, *RUN) as process:
            process.batches(2)
            batch = kill_at(process, moments, "set_aside", "both")
        if not batch.main_has_moved():
            break
    else:
        pytest.fail("the batch was over each time")
    left, writer = moments.quarantine(), moments.writer()
    with ingesting(feed, *RUN) as process:
        # It has the lease, and has just removed what it found in quarantine.
        moments.wait(lambda: moments.quarantine() != left)
        process.kill("both")
    assert moments.writer() != writer
    sender.stop()
    went_on = go_on(feed)
    found = account(feed, sender.sent)
    record("Killed during start-up clean-up", "SIGKILL to both", found, went_on)


@pytest.mark.long
def test_killed_twenty_times_at_random_under_load(feed: Feed) -> None:
    chance, sender = random.Random(11), Sender(feed)
    tables.create_tables(feed.services, [feed.stream])
    for number in range(20):
        with ingesting(feed, *RUN) as process:
            if number % 5:
                process.batches(1)
                time.sleep(chance.uniform(0, 2))
            else:
                # In the start-up.
                time.sleep(chance.uniform(5, 15))
            process.kill(chance.choice(["python", "jvm", "both"]))
    sender.stop()
    went_on = go_on(feed)
    done = "SIGKILL to the Python, the JVM or both"
    record("Killed 20 times at random", done, account(feed, sender.sent), went_on)


@pytest.mark.long
def test_killed_ten_times_beside_a_backfill_and_a_replay(feed: Feed) -> None:
    chance, number = random.Random(5), feed.register(ORDER)
    sent = send(feed, *orders(number, 0, 20_000))
    sent |= send(feed, *orders(number, 20_000, 20_000), partition=1)
    assert feed.command("run", "--once", "--from", "latest").exit_code == 0
    # Of a schema that is registered later: until then they are in quarantine.
    later, number = next_schema(feed)
    values = [framed(number, later, {"id": i, "note": "n", "more": 2}) for i in range(2000)]
    sent |= send(feed, *values[:1000]) | send(feed, *values[1000:], partition=1)
    assert feed.command("run", "--once", "--unknown-wait", "0").exit_code == 0
    assert len(feed.quarantined()) == 2000
    assert feed.register(later) == number
    sender, beside = Sender(feed), dict[str, Ingest]()
    try:
        for turn in range(10):
            with ingesting(feed, *RUN) as process:
                begin_beside(feed, beside, turn)
                process.batches(1)
                time.sleep(chance.uniform(0, 4))
                process.kill(chance.choice(["python", "jvm", "both"]))
                for name in [name for name in beside if chance.random() < 0.4]:
                    beside.pop(name).kill("both")
    finally:
        for other in beside.values():
            other.close()
    sender.stop()
    went_on = go_on(feed)
    assert feed.command("backfill").exit_code == 0
    assert feed.command("quarantine", "replay").exit_code == 0
    kinds = {row[0] for row in feed.log().select("kind").collect()}
    assert kinds >= {"backfill", "replay", "stream"}
    record(
        "Killed 10 times beside a backfill and a replay",
        "SIGKILL to the stream, and now and then to the others",
        account(feed, sent | sender.sent),
        f"{went_on}; both commands repeated",
    )


def next_schema(feed: Feed) -> tuple[Any, int]:
    """A schema of the topic that is not registered yet, and the id that it will have."""
    more = {"name": "more", "type": "int", "default": 0}
    # The registry knows a schema that another feed has by its id, too.
    later = {**ORDER, "doc": feed.topic, "fields": [*ORDER["fields"], more]}
    # Ids are given one after the other; this one comes with the next schema.
    probe = feed.register({**later, "name": "Other"}, f"{feed.topic}-probe")
    return later, probe + 1


def begin_beside(feed: Feed, beside: dict[str, Ingest], turn: int) -> None:
    """Begin a backfill and a replay again where they have ended; each does a part."""
    part = f"pmod(_kafka_offset, 10) = {turn}"
    commands = {
        "backfill": ("--max-batch", "1000", "--max-rate", "500"),
        "quarantine": ("replay", "--where", part),
    }
    for command, options in commands.items():
        if command not in beside or beside[command].is_over():
            beside[command] = Ingest(feed, *options, command=command)


@pytest.mark.long
def test_a_writer_asleep_and_overtaken_does_not_commit(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, moments = Sender(feed), Moments(feed.stack.home, feed.stream.table)
    tables.create_tables(feed.services, [feed.stream])
    with ingesting(feed, *RUN) as process:
        process.batches(2)
        batch = moments.begin()

        def is_staged() -> bool:
            nonlocal batch
            if batch.main_has_moved():
                batch = moments.begin()
            return batch.staged()

        moments.wait(is_staged)
        process.send_signal(signal.SIGSTOP)
        # It lives on this machine: only one that is reported it does not may take over.
        with monkeypatch.context() as patch:
            patch.setattr("spark_ingest.commits.lease.Holder.alive", lambda self, last_write: False)
            overtaken = go_on(feed)
        taken = moments.main()
        process.send_signal(signal.SIGCONT)
        # It has become the standby, and the table is free.
        moments.wait(lambda: moments.main() != taken)
        process.terminate()
        assert process.wait() == 0
        said = [line for line in process.errors() if "was taken over" in line]
        assert len(said) == 1, said
        assert said[0].endswith("waiting for its lease")
    sender.stop()
    go_on(feed)
    assert overtaken
    record(
        "A writer asleep, overtaken",
        "SIGSTOP with a batch staged, another takes over, SIGCONT",
        account(feed, sender.sent),
        "it said so, waited, and took over again by itself",
    )


@pytest.mark.long
def test_an_unknown_schema_is_registered_between_crash_and_retry(feed: Feed) -> None:
    """What was quarantined by the batch that never committed is good when it is repeated."""
    ordinary = feed.register(ORDER)
    tables.create_tables(feed.services, [feed.stream])
    later, number = next_schema(feed)
    value = framed(number, later, {"id": 1, "note": "n", "more": 2})
    good: Sent = {}
    unknown: Sent = {}
    moments = Moments(feed.stack.home, feed.stream.table)
    for turn in range(10):
        with ingesting(feed, *RUN, "--unknown-wait", "0") as process:
            good |= send(feed, *orders(ordinary, turn, 1))
            process.batches(1)
            jvms, batch = process.jvms(), moments.begin()
            unknown |= send(feed, value)
            moments.wait(batch.set_aside)
            process.kill("both", jvms)
        # A batch of one record may be published before it is killed: then another one.
        if not batch.main_has_moved():
            break
    assert not batch.main_has_moved()
    assert {error for _, error in feed.quarantined()} == {"unknown_id"}
    assert feed.register(later) == number
    went_on = go_on(feed)
    assert len(feed.quarantined()) == len(unknown) - 1
    record(
        "Its schema registered between crash and retry",
        "SIGKILL after the quarantine commit, then the schema registered",
        account(feed, good | unknown),
        went_on,
    )


@pytest.mark.long
def test_killed_during_maintenance(feed: Feed) -> None:
    sender, moments = Sender(feed), Moments(feed.stack.home, feed.stream.table)
    tables.create_tables(feed.services, [feed.stream])
    with ingesting(feed, *RUN) as process:
        process.batches(8)
        maintain = Ingest(feed, command="maintain")
        try:
            moments.wait(lambda: moments.operation(feed.stream.table) == "replace")
            maintain.kill("both")
            process.batches(3)
            process.kill("both")
        finally:
            maintain.close()
    sender.stop()
    went_on = go_on(feed)
    record(
        "Killed during maintenance",
        "SIGKILL to `maintain` after its compaction, then to the stream beside it",
        account(feed, sender.sent),
        went_on,
    )


@pytest.mark.long
@pytest.mark.skipif(not psutil.LINUX, reason="a running process gets no limit here")
def test_a_stream_waits_for_room_on_a_full_disk(feed: Feed) -> None:
    """A file that may not grow stands for the disk: the error is of the same kind."""
    sender, moments = Sender(feed), Moments(feed.stack.home, feed.stream.table)
    tables.create_tables(feed.services, [feed.stream])
    with ingesting(feed, *RUN) as process:
        process.batches(2)
        full, free = (4096, psutil.RLIM_INFINITY), (psutil.RLIM_INFINITY,) * 2
        for jvm in process.jvms():
            jvm.rlimit(psutil.RLIMIT_FSIZE, full)
        time.sleep(10)
        stood = moments.main()
        for jvm in process.jvms():
            jvm.rlimit(psutil.RLIMIT_FSIZE, free)
        moments.wait(lambda: moments.main() != stood)
        process.terminate()
        assert process.wait() == 0
        said = [line for line in process.errors() if "restarts in" in line]
        assert said
        assert "File too large" in said[0]
    sender.stop()
    go_on(feed)
    done = "no file of the JVM may grow beyond 4 kB, for ten seconds"
    record("Disk full", done, account(feed, sender.sent), "by itself")
