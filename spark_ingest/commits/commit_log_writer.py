"""The stream's rows of the commit log, written a few seconds apart for all streams at once.

A row of its own for each commit would cost as much as a small batch. The log follows the
tables, so nothing is at stake: commits that a crash keeps out of it are added from the
snapshots at the next start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from spark_ingest.commits import commit_log
from spark_ingest.commits.committed import BatchResult
from spark_ingest.commits.lease import Lease
from spark_ingest.errors import LeaseLost
from spark_ingest.lake import jvm_watch
from spark_ingest.lake.jvm import TROUBLE, reason_text
from spark_ingest.sources import Stream

_SECONDS = 5.0
_Row = tuple[Lease, Stream, BatchResult]


class CommitLog:
    """Takes the commits of all streams of a run, until it is closed."""

    def __init__(self, spark: SparkSession, note: Callable[[str], None]) -> None:
        """Begin to write in the background.

        ``note`` takes what a person should know.
        """
        self.spark = spark
        self._note = note
        self._rows: list[_Row] = []
        # Whether a write failed, so that its rows may be in the log all the same.
        self._again = False
        self._adding = threading.Lock()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._is_behind = False
        self._thread = threading.Thread(target=self._write_on, name="commit-log", daemon=True)

        self._thread.start()

    def close(self) -> None:
        """End the writing in the background; who publishes last flushes."""
        self._closing.set()
        self._thread.join()

    def add(self, lease: Lease, stream: Stream, result: BatchResult) -> None:
        """Take a commit that was just published, to be written soon.

        It was published under ``lease``.
        """
        with self._adding:
            self._rows.append((lease, stream, result))

    def flush(self, stream: Stream | None = None) -> None:
        """Write what was added by now; all of it is in the log when this returns.

        What cannot be written is kept for the next time: a table that cannot be asked keeps
        its own rows waiting and no others. ``stream`` is whose rows matter, None for all:
        another's trouble is not raised.
        """
        with self._writing:
            with self._adding:
                taken, self._rows = self._rows, []
            kept, owned = list[_Row](), list[_Row]()
            failed: dict[str, Exception] = {}

            def published() -> list[tuple[Stream, BatchResult]]:
                # Behind a refusal it is asked again: what was found before counts no more.
                kept.clear()
                owned.clear()
                failed.clear()
                for lease, rows in _by_lease(taken):
                    try:
                        # Whoever took a table over has logged its commits from the snapshots.
                        owned.extend(rows if _is_current(lease) else [])
                    except TROUBLE as error:
                        kept.extend(rows)
                        failed[rows[0][1].name] = error
                return [(whose, result) for _, whose, result in owned]

            try:
                if taken:
                    commit_log.log_commits(self.spark, published, again=self._again)
                self._again = self._again and not owned
            except BaseException as error:
                self._again = True
                kept = taken
                if not isinstance(error, TROUBLE):
                    raise
                failed |= {s.name: error for _, s, _ in owned or taken}
            finally:
                with self._adding:
                    self._rows = [*kept, *self._rows]
        name = next(iter(failed), "") if stream is None else stream.name
        if name in failed:
            raise failed[name]

    def _write_on(self) -> None:
        while not self._closing.wait(_SECONDS):
            try:
                self.flush()
                self._is_behind = False
            except TROUBLE as error:
                if jvm_watch.has_exited(error):
                    return
                # Once: a full disk or a catalog that is away stops the streams too.
                if not self._is_behind:
                    text = reason_text(error)
                    self._note(f"the commit log is behind, and catches up: {text}")
                self._is_behind = True


def _by_lease(rows: list[_Row]) -> list[tuple[Lease, list[_Row]]]:
    found: dict[Lease, list[_Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return list(found.items())


def _is_current(lease: Lease) -> bool:
    try:
        lease.check()
    except LeaseLost:
        return False
    return True
