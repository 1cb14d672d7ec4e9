"""One stream's trouble is its own: it rests and is begun again, and the others go on."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Protocol

from spark_ingest.errors import (
    CommitRefused,
    ConfigurationError,
    LeaseLost,
    NothingCaptured,
    PersonNeeded,
    ServiceUnavailable,
    StreamsFailed,
)
from spark_ingest.lake import jvm_watch
from spark_ingest.lake.jvm import TROUBLE, reason_text
from spark_ingest.streaming.progress import Progress
from spark_ingest.streaming.renewals import Renewals

_POLL_SECONDS = 0.2
_FIRST_SECONDS = 5.0
_LONGEST_SECONDS = 300.0
_SERVICE_SECONDS = 5.0
_LEASE_SECONDS = 30.0
_PERSON_SECONDS = 60.0
_TOPIC_SECONDS = 10.0
# All write to the commit log when they begin; some hundred would only be in each other's way.
_BEGIN_AT_ONCE = 4


class Stopping(Exception):
    """The run is being stopped while a batch waits."""


class Reason(StrEnum):
    """Why a stream is begun again.

    Attributes:
        MOVED: Others wrote to its table: its offsets are read again, at once.
        SERVICE: Kafka or the registry is away.
        LEASE: Another writer has the table: taken over when that one is gone.
        TOPIC: Nothing was captured yet, so it has no topic: no trouble.
        PERSON: Only a person can mend it.
        FAILURE: All else: storage, catalog, executors.
    """

    MOVED = "moved"
    SERVICE = "service"
    LEASE = "lease"
    TOPIC = "topic"
    PERSON = "person"
    FAILURE = "failure"


class Run(Protocol):
    """A stream under its lease."""

    @property
    def commits(self) -> int:
        """How many it has made."""

    def start(self) -> None:
        """Begin at the table's offsets, again where it did before."""

    def running(self) -> bool:
        """Whether it is at work; raises what ended it."""

    def renew(self) -> None:
        """Keep the lease; raises nothing."""

    def stop(self) -> None:
        """Let the batch at work finish and give the lease back."""


def reason_of(error: Exception) -> Reason:
    """What kind of trouble an error is."""
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Reason], ...] = (
        (ServiceUnavailable, Reason.SERVICE),
        (CommitRefused, Reason.MOVED),
        (LeaseLost, Reason.LEASE),
        (NothingCaptured, Reason.TOPIC),
        ((PersonNeeded, ConfigurationError), Reason.PERSON),
    )
    return next((why for kind, why in kinds if isinstance(error, kind)), Reason.FAILURE)


def pause(reason: Reason, tries: int) -> float:
    """Seconds until a stream is begun again.

    ``tries`` is how often it was since it last committed.
    """
    if reason is Reason.MOVED:
        if tries == 0:
            return 0
        tries -= 1
    fixed = {
        Reason.SERVICE: _SERVICE_SECONDS,
        Reason.LEASE: _LEASE_SECONDS,
        Reason.TOPIC: _TOPIC_SECONDS,
        Reason.PERSON: _PERSON_SECONDS,
    }
    # Beyond the tenth doubling it is the longest anyway.
    growing = min(_FIRST_SECONDS * (1 << min(tries, 10)), _LONGEST_SECONDS)
    # Streams that one outage stopped shall not all come back in the same moment.
    return fixed.get(reason, growing) * secrets.SystemRandom().uniform(0.8, 1.2)


class Watched:
    """A stream that is begun, and begun again after trouble."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Run],
        mend: Callable[[], None],
        once: bool,
        progress: Progress,
        is_incomplete: bool = False,
    ) -> None:
        """Watch a stream that is not begun yet.

        Args:
            make: Takes its lease.
            mend: Makes what is missing; called before it is begun again.
            once: Whether trouble ends it, instead of a pause.
            progress: Gets a note of trouble, and of its end.
            is_incomplete: Whether something is missing already before it is begun first.
        """
        self.name = name
        self.failure: Exception | None = None
        self._make = make
        self._mend = mend
        self._once = once
        self._progress = progress
        self._run: Run | None = None
        # Its run could not give back what it holds: that comes before another.
        self._is_ending = False
        self._needs_mending = is_incomplete
        self._was_up = False
        self._is_up = False
        self._is_over = False
        self._rests_until = 0.0
        self._tries = 0
        self._commits = 0
        self._noted: str | None = None
        self._gate = threading.Semaphore()
        self.done = threading.Event()

    def look_after(self, ending: threading.Event, gate: threading.Semaphore) -> None:
        """Look after it in a thread of its own: storage that hangs keeps no other waiting.

        ``ending`` is set when it shall end: one that is done keeps its lease until then.
        ``gate`` is held while it begins.
        """
        self._gate = gate
        renewals = Renewals([self])
        try:
            while not ending.is_set() and self.look():
                ending.wait(_POLL_SECONDS)
            self.done.set()
            ending.wait()
        finally:
            self.close()
            renewals.stop()

    def look(self) -> bool:
        """Begin it, begin it again, or see how it does; whether it is not done."""
        if self._is_over:
            return False
        if time.monotonic() < self._rests_until:
            return True
        try:
            run = self._run if self._is_up else None
            if run is None:
                with self._gate:
                    run = self._begin()
            if run.running():
                return True
        except TROUBLE as error:
            if jvm_watch.is_gone(error):
                raise
            self._rest(error)
            return not self._is_over
        self._is_over = True
        return False

    def renew(self) -> None:
        """Keep its lease, also while it rests; any thread may ask for it."""
        run = self._run
        if run is not None and not self._is_ending:
            run.renew()

    def close(self) -> None:
        """End it; what goes wrong then is its failure."""
        if self._run is None:
            return
        try:
            self._run.stop()
        except TROUBLE as error:
            self.failure = self.failure or error
        self._run = None
        self._set_up(False)

    def _begin(self) -> Run:
        if self._run is None or self._is_ending:
            if self._needs_mending:
                self._mend()
            self._needs_mending = True
            if self._run is not None:
                self._run.stop()
                self._run, self._is_ending = None, False
            self._run, self._commits = self._make(), 0
        self._run.start()
        self._was_up = True
        self.failure = None
        self._set_up(True)
        return self._run

    def _rest(self, error: Exception) -> None:
        reason = reason_of(error)
        if reason is Reason.TOPIC:
            self._await_topic(reason_text(error))
            return
        self.failure = error
        self._set_up(False)
        is_waited_for = reason is Reason.SERVICE and self._was_up
        if self._once and not is_waited_for and reason is not Reason.MOVED:
            self._is_over = True
            return
        if self._run is not None and self._run.commits != self._commits:
            self._commits, self._tries = self._run.commits, 0
        seconds = pause(reason, self._tries)
        self._tries += 1
        self._report(reason, reason_text(error), seconds)
        if reason in (Reason.LEASE, Reason.FAILURE):
            # Another machine may fare better.
            self._end()
        self._rests_until = time.monotonic() + seconds

    def _await_topic(self, text: str) -> None:
        """Look for its topic now and then, or be over; nothing is wrong with it."""
        if self._run is not None:
            self._set_up(False)
        then = "skipped" if self._once else "taken up when it appears"
        if self._noted != text:
            self._progress.note(f"{self.name}: {text}; {then}")
        self._noted, self.failure = text, None
        # Its table is there: nothing is to be mended before its topic is.
        self._needs_mending = False
        self._is_over = self._once
        self._rests_until = time.monotonic() + pause(Reason.TOPIC, 0)

    def _report(self, reason: Reason, text: str, seconds: float) -> None:
        if reason is Reason.SERVICE:
            self._progress.waiting(self.name, f"{text}; waiting")
            return
        then = {
            Reason.MOVED: "reading its offsets again",
            Reason.LEASE: "waiting to take it over",
            Reason.PERSON: "paused, retried every minute",
        }.get(reason, f"restarts in {seconds:.0f} s")
        # What goes on for days is noted once.
        known = self._noted == text and reason in (Reason.LEASE, Reason.PERSON)
        self._noted = text
        if not known:
            self._progress.note(f"{self.name}: {text}; {then}")
        self._progress.restarted(self.name, reason)

    def _end(self) -> None:
        if self._run is None or self._is_ending:
            return
        self._is_ending = True
        try:
            self._run.stop()
        except TROUBLE:
            # It is in trouble already, and that was noted.
            return
        self._run, self._is_ending = None, False

    def _set_up(self, is_up: bool) -> None:
        self._is_up = is_up
        self._progress.up(self.name, is_up)


def supervise(watched: Sequence[Watched], stopping: threading.Event, progress: Progress) -> None:
    """Look after streams until all are done, or ``stopping`` is set.

    When ``stopping`` is set, each finishes its batch first; ``progress`` gets a note that they are
    stopped.

    Raises:
        StreamsFailed: Some ended in trouble, or were in trouble when all were stopped; where
            there is only one stream, its own error.
    """
    ending, gate = threading.Event(), threading.Semaphore(_BEGIN_AT_ONCE)
    with ThreadPoolExecutor(max(len(watched), 1), "stream") as threads:
        looking = [threads.submit(one.look_after, ending, gate) for one in watched]
        try:
            while not all(one.done.is_set() for one in watched):
                if stopping.wait(_POLL_SECONDS):
                    progress.note("stopping: the batches at work are finished first")
                    break
                # Before all end only a mistake in the program ends one.
                if any(look.done() for look in looking):
                    break
        finally:
            ending.set()
    for look in looking:
        look.result()
    failed = [one for one in watched if one.failure is not None]
    if len(watched) == 1 and failed and failed[0].failure is not None:
        raise failed[0].failure
    if failed:
        causes = "; ".join(
            f"{one.name}: {reason_text(one.failure)}" for one in failed if one.failure
        )
        raise StreamsFailed(f"{len(failed)} of {len(watched)} streams failed: {causes}")
