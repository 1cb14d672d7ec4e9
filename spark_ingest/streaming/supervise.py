"""Supervises streams: a failed one is restarted after a pause, without affecting the others."""

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

_POLL_SECONDS = 0.2
_FIRST_SECONDS = 5.0
_LONGEST_SECONDS = 300.0
_SERVICE_SECONDS = 5.0
_LEASE_SECONDS = 30.0
_PERSON_SECONDS = 60.0
_TOPIC_SECONDS = 10.0
# Most of a start is waiting for the catalog, the storage and the broker.
_BEGIN_AT_ONCE = 16


class Stopping(Exception):
    """The run is being stopped during a batch."""


class Reason(StrEnum):
    """The reason for restarting a stream.

    Attributes:
        MOVED: Another process wrote to its table: its offsets are read again, at once.
        SERVICE: Kafka or the registry is unavailable.
        LEASE: Another writer has the table: it is taken over when that one has exited.
        TOPIC: Nothing was captured yet, so there is no topic: not a failure.
        PERSON: It needs manual intervention.
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
        """Number of commits of this run."""

    def start(self) -> None:
        """Start, or restart, at the table's offsets."""

    def running(self) -> bool:
        """Whether it is running; raises the error that stopped it."""

    def stop(self) -> None:
        """Let the running batch finish and release the lease."""


def reason_of(error: Exception) -> Reason:
    """Classify an error."""
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Reason], ...] = (
        (ServiceUnavailable, Reason.SERVICE),
        (CommitRefused, Reason.MOVED),
        (LeaseLost, Reason.LEASE),
        (NothingCaptured, Reason.TOPIC),
        ((PersonNeeded, ConfigurationError), Reason.PERSON),
    )
    return next((why for kind, why in kinds if isinstance(error, kind)), Reason.FAILURE)


def pause(reason: Reason, tries: int) -> float:
    """Seconds until a stream is restarted.

    ``tries`` is the number of restarts since its last commit.
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
    # After ten doublings the maximum applies anyway.
    growing = min(_FIRST_SECONDS * (1 << min(tries, 10)), _LONGEST_SECONDS)
    # Jitter, so that streams stopped by one outage do not all restart at once.
    return fixed.get(reason, growing) * secrets.SystemRandom().uniform(0.8, 1.2)


class SupervisedStream:
    """A stream that is started, and restarted after failures."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Run],
        repair: Callable[[], None],
        once: bool,
        progress: Progress,
        is_incomplete: bool = False,
    ) -> None:
        """Supervise a stream that has not started yet.

        Args:
            make: Takes its lease.
            repair: Creates its table if missing; called before a restart.
            once: Whether a failure ends it, instead of a pause and a restart.
            progress: Receives notes about failures and restarts.
            is_incomplete: Whether its table is missing before the first start.
        """
        self.name = name
        self.failure: Exception | None = None
        self._make = make
        self._mend = repair
        self._once = once
        self._progress = progress
        self._run: Run | None = None
        # Its run could not release its lease: that must happen before a new run.
        self._is_ending = False
        self._needs_repair = is_incomplete
        self._was_up = False
        self._is_up = False
        self._is_over = False
        self._paused_until = 0.0
        self._tries = 0
        self._commits = 0
        self._noted: str | None = None
        self._gate = threading.Semaphore()
        self.done = threading.Event()

    def run_until(self, ending: threading.Event, gate: threading.Semaphore) -> None:
        """Supervise it in the calling thread, so that hanging storage blocks no other stream.

        It stops when ``ending`` is set, and keeps its lease until then even if it has finished.
        ``gate`` limits concurrent starts.
        """
        self._gate = gate
        try:
            while not ending.is_set() and self.poll():
                ending.wait(_POLL_SECONDS)
            self.done.set()
            ending.wait()
        finally:
            self.close()

    def poll(self) -> bool:
        """Start, restart or check the stream; whether it has not finished."""
        if self._is_over:
            return False
        if time.monotonic() < self._paused_until:
            return True
        try:
            run = self._run if self._is_up else None
            if run is None:
                with self._gate:
                    run = self._begin()
            if run.running():
                return True
        except TROUBLE as error:
            if jvm_watch.has_exited(error):
                raise
            self._pause(error)
            return not self._is_over
        self._is_over = True
        return False

    def close(self) -> None:
        """Stop it; an error while stopping is recorded as its failure."""
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
            if self._needs_repair:
                self._mend()
            self._needs_repair = True
            if self._run is not None:
                self._run.stop()
                self._run, self._is_ending = None, False
            self._run, self._commits = self._make(), 0
        self._run.start()
        self._was_up = True
        self.failure = None
        self._set_up(True)
        return self._run

    def _pause(self, error: Exception) -> None:
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
            # Another machine may succeed.
            self._end()
        self._paused_until = time.monotonic() + seconds

    def _await_topic(self, text: str) -> None:
        """Wait for its topic, or finish; this is not a failure."""
        if self._run is not None:
            self._set_up(False)
        then = "skipped" if self._once else "starts when it appears"
        if self._noted != text:
            self._progress.note(f"{self.name}: {text}; {then}")
        self._noted, self.failure = text, None
        # Its table exists: there is nothing to repair before the topic exists.
        self._needs_repair = False
        self._is_over = self._once
        self._paused_until = time.monotonic() + pause(Reason.TOPIC, 0)

    def _report(self, reason: Reason, text: str, seconds: float) -> None:
        if reason is Reason.SERVICE:
            self._progress.waiting(self.name, f"{text}; waiting")
            return
        then = {
            Reason.MOVED: "reading its offsets again",
            Reason.LEASE: "waiting for its lease",
            Reason.PERSON: "paused, retried every minute",
        }.get(reason, f"restarts in {seconds:.0f} s")
        # Log a persistent condition once.
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
            # It has failed already, and that was logged.
            return
        self._run, self._is_ending = None, False

    def _set_up(self, is_up: bool) -> None:
        self._is_up = is_up
        self._progress.up(self.name, is_up)


def supervise(
    streams: Sequence[SupervisedStream], stopping: threading.Event, progress: Progress
) -> None:
    """Supervise streams until all have finished, or ``stopping`` is set.

    After ``stopping`` is set, each finishes its batch first; ``progress`` gets a note.

    Raises:
        StreamsFailed: Some had failed when all were stopped; with a single stream, its own error
            is raised instead.
    """
    ending, gate = threading.Event(), threading.Semaphore(_BEGIN_AT_ONCE)
    with ThreadPoolExecutor(max(len(streams), 1), "stream") as threads:
        running = [threads.submit(one.run_until, ending, gate) for one in streams]
        try:
            while not all(one.done.is_set() for one in streams):
                if stopping.wait(_POLL_SECONDS):
                    progress.note("stopping: running batches finish first")
                    break
                # A thread that returns before `ending` is set has raised an unexpected error.
                if any(thread.done() for thread in running):
                    break
        finally:
            ending.set()
    for thread in running:
        thread.result()
    failed = [one for one in streams if one.failure is not None]
    if len(streams) == 1 and failed and failed[0].failure is not None:
        raise failed[0].failure
    if failed:
        causes = "; ".join(
            f"{one.name}: {reason_text(one.failure)}" for one in failed if one.failure
        )
        raise StreamsFailed(f"{len(failed)} of {len(streams)} streams failed: {causes}")
