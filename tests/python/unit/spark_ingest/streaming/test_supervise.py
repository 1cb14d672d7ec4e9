"""Streams in trouble: what rests, for how long, what ends, and what the others notice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from spark_ingest.errors import (
    CommitRefused,
    ConfigurationError,
    LeaseLost,
    MillraceError,
    NothingCaptured,
    PersonNeeded,
    ServiceUnavailable,
    StreamsFailed,
)
from spark_ingest.streaming import supervise
from spark_ingest.streaming.progress import BatchReport, Progress
from spark_ingest.streaming.supervise import Reason, SupervisedStream, pause, reason_of


@dataclass
class Reported(Progress):
    """Progress that remembers."""

    notes: list[str] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    ups: list[bool] = field(default_factory=list)

    def batch(self, report: BatchReport) -> None:
        raise AssertionError(report)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def restarted(self, stream: str, reason: str) -> None:
        self.restarts.append(f"{stream} {reason}")

    def up(self, stream: str, is_up: bool) -> None:
        assert stream
        self.ups.append(is_up)


class Scripted:
    """A run that does what its script says: raise, or return whether it is at work."""

    def __init__(self, *script: Exception | bool) -> None:
        self._script = list(script)
        self.commits = 0
        self.starts = 0
        self.stops = 0
        self.stop_error: Exception | None = None

    def start(self) -> None:
        self.starts += 1

    def running(self) -> bool:
        step = self._script.pop(0) if self._script else False
        if isinstance(step, Exception):
            raise step
        if step:
            self.commits += 1
        return step

    def stop(self) -> None:
        self.stops += 1
        if self.stop_error is not None:
            raise self.stop_error


def nothing() -> None:
    """Nothing is missing."""


@pytest.fixture
def reported() -> Reported:
    return Reported()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time that passes when it is reported to."""
    now = [1000.0]
    monkeypatch.setattr("spark_ingest.streaming.supervise.time.monotonic", lambda: now[0])

    def forward(seconds: float) -> None:
        now[0] += seconds

    return forward


def test_errors_are_distinguished_by_who_can_mend_them() -> None:
    assert reason_of(ServiceUnavailable("")) is Reason.SERVICE
    assert reason_of(CommitRefused("")) is Reason.MOVED
    assert reason_of(LeaseLost("")) is Reason.LEASE
    assert reason_of(NothingCaptured("")) is Reason.TOPIC
    assert reason_of(PersonNeeded("")) is Reason.PERSON
    assert reason_of(ConfigurationError("")) is Reason.PERSON
    assert reason_of(MillraceError("")) is Reason.FAILURE
    assert reason_of(OSError()) is Reason.FAILURE


def test_pauses_double_from_five_seconds_to_five_minutes() -> None:
    for tries, seconds in enumerate((5, 10, 20, 40, 80, 160, 300, 300)):
        assert 0.8 * seconds <= pause(Reason.FAILURE, tries) <= 1.2 * seconds
    assert pause(Reason.FAILURE, 10**6) <= 360


def test_only_the_first_pause_of_a_table_that_moved_is_none() -> None:
    assert pause(Reason.MOVED, 0) == 0
    assert 4 <= pause(Reason.MOVED, 1) <= 6
    assert 8 <= pause(Reason.MOVED, 2) <= 12


def test_what_a_person_must_mend_is_tried_again_every_minute() -> None:
    assert {48 <= pause(Reason.PERSON, tries) <= 72 for tries in range(9)} == {True}


def test_a_failing_stream_gives_its_lease_back_and_is_recreated(
    reported: Reported, clock: Callable[[float], None]
) -> None:
    runs = [Scripted(True, OSError("no space")), Scripted(True)]
    made: list[str] = []

    def make() -> Scripted:
        made.append("made")
        return runs[made.count("made") - 1]

    one = SupervisedStream("shop.orders", make, lambda: made.append("mended"), False, reported)
    assert one.poll()
    assert one.poll()
    assert (runs[0].stops, one.failure is None) == (1, False)
    assert reported.notes[0].startswith("shop.orders: no space; restarts in ")
    assert reported.restarts == ["shop.orders failure"]
    assert one.poll()
    assert made == ["made"]
    clock(6.1)
    assert one.poll()
    assert (made, one.failure) == (["made", "mended", "made"], None)
    assert reported.ups == [True, False, True]


def test_a_good_batch_makes_pauses_short_again(
    reported: Reported, clock: Callable[[float], None]
) -> None:
    def make() -> Scripted:
        return Scripted(*([True] if len(reported.restarts) == 4 else []), OSError("gone"))

    one = SupervisedStream("a", make, nothing, False, reported)
    for _ in range(8):
        one.poll()
        clock(400)
    seconds = [int(note.split()[-2]) for note in reported.notes]
    assert [s > 30 for s in seconds[:4]] == [False, False, False, True]
    assert seconds[4] <= 6


def test_a_stream_that_waits_for_a_service_or_a_person_keeps_its_run(
    reported: Reported, clock: Callable[[float], None]
) -> None:
    run = Scripted(PersonNeeded("a gap"), PersonNeeded("a gap"), True)
    one = SupervisedStream("a", lambda: run, nothing, False, reported)
    for _ in range(3):
        assert one.poll()
        clock(75)
    assert (run.starts, run.stops) == (3, 0)
    # What goes on for days is reported once, and counted each time.
    assert reported.notes == ["a: a gap; paused, retried every minute"]
    assert reported.restarts == ["a person"] * 2


def test_a_standby_waits_for_the_lease_and_takes_it(
    reported: Reported, clock: Callable[[float], None]
) -> None:
    tries: list[int] = []

    def make() -> Scripted:
        tries.append(1)
        if len(tries) < 3:
            raise LeaseLost("t has a writer already (pid 1 on other)")
        return Scripted(True)

    one = SupervisedStream("a", make, nothing, False, reported)
    for _ in range(3):
        assert one.poll()
        clock(40)
    assert one.failure is None
    assert reported.notes == ["a: t has a writer already (pid 1 on other); waiting for its lease"]


def test_one_that_fails_leaves_the_others_alone_and_is_named_at_the_end(reported: Reported) -> None:
    broken = SupervisedStream("a", lambda: Scripted(OSError("disk full")), nothing, True, reported)
    good_run = Scripted(True, True, True)
    good = SupervisedStream("b", lambda: good_run, nothing, True, reported)
    with pytest.raises(StreamsFailed, match="1 of 2 streams failed: a: disk full"):
        supervise.supervise([broken, good], threading.Event(), reported)
    assert (good_run.commits, good_run.stops, good.failure) == (3, 1, None)


def test_a_single_streams_error_is_raised_as_it_is(reported: Reported) -> None:
    alone = SupervisedStream(
        "a", lambda: Scripted(LeaseLost("taken over")), nothing, True, reported
    )
    with pytest.raises(LeaseLost, match="taken over"):
        supervise.supervise([alone], threading.Event(), reported)


def test_a_stop_that_fails_keeps_no_other_stream_from_stopping(reported: Reported) -> None:
    broken_run, good_run = Scripted(True), Scripted(True)
    broken_run.stop_error = OSError("no catalog")
    watched = [
        SupervisedStream("a", lambda: broken_run, nothing, True, reported),
        SupervisedStream("b", lambda: good_run, nothing, True, reported),
    ]
    with pytest.raises(StreamsFailed, match="a: no catalog"):
        supervise.supervise(watched, threading.Event(), reported)
    assert good_run.stops == 1


def test_a_stream_that_still_rests_when_all_are_stopped_is_named(reported: Reported) -> None:
    stopping = threading.Event()
    good = SupervisedStream("b", lambda: Scripted(*[True] * 1000), nothing, False, reported)

    def stop_later() -> Scripted:
        threading.Timer(0.3, stopping.set).start()
        return Scripted(OSError("gone"))

    resting = SupervisedStream("a", stop_later, nothing, False, reported)
    with pytest.raises(StreamsFailed, match="a: gone"):
        supervise.supervise([resting, good], stopping, reported)
    assert reported.notes[-1] == "stopping: running batches finish first"


def test_a_mistake_in_the_program_ends_all(reported: Reported) -> None:
    wrong = SupervisedStream("a", lambda: Scripted(KeyError("oops")), nothing, False, reported)
    good_run = Scripted(*[True] * 9)
    good = SupervisedStream("b", lambda: good_run, nothing, False, reported)
    with pytest.raises(KeyError):
        supervise.supervise([good, wrong], threading.Event(), reported)
    assert good_run.stops == 1


def test_a_lease_that_could_not_be_given_back_is_before_it_is_taken_again(
    reported: Reported, clock: Callable[[float], None]
) -> None:
    broken, fresh = Scripted(OSError("away")), Scripted(True)
    broken.stop_error = OSError("away")
    runs = [broken, fresh]
    one = SupervisedStream("a", lambda: runs.pop(0), nothing, False, reported)
    for _ in range(2):
        assert one.poll()
        clock(20)
    assert (broken.stops, runs) == (2, [fresh])
    broken.stop_error = None
    assert one.poll()
    assert (broken.stops, fresh.starts, one.failure) == (3, 1, None)


def test_what_is_missing_before_a_stream_begins_is_made_first(reported: Reported) -> None:
    mended: list[int] = []

    def repair() -> None:
        mended.append(1)
        raise ConfigurationError("no usable schema")

    watched = SupervisedStream("a", lambda: Scripted(True), repair, True, reported, True)

    assert not watched.poll()

    assert mended == [1]
    assert str(watched.failure) == "no usable schema"


def no_topic() -> Scripted:
    raise NothingCaptured("topic t does not exist")


def test_a_captured_table_without_a_topic_is_skipped_and_no_failure(reported: Reported) -> None:
    watched = SupervisedStream("a", no_topic, nothing, True, reported)

    assert not watched.poll()

    assert watched.failure is None
    assert reported.notes == ["a: topic t does not exist; skipped"]
    assert (reported.restarts, reported.ups) == ([], [])


def test_a_captured_table_is_taken_up_when_its_topic_appears(
    reported: Reported, clock: Callable[[float], None]
) -> None:
    tries: list[int] = []
    mended: list[int] = []

    def make() -> Scripted:
        tries.append(1)
        return no_topic() if len(tries) < 3 else Scripted(True, True)

    watched = SupervisedStream("a", make, lambda: mended.append(1), False, reported)
    for _ in range(4):
        assert watched.poll()
        clock(15)

    assert reported.notes == ["a: topic t does not exist; starts when it appears"]
    assert len(tries) == 3
    assert (reported.restarts, reported.ups, mended) == ([], [True], [])
