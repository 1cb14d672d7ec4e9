"""Writes the rows of all streams to the commit log, batched every few seconds.

An append per commit would cost as much as a small batch. A crash loses nothing: the next start
adds missing commits from the snapshots.
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
    """Logs the commits of all streams of a run until it is closed."""

    def __init__(self, spark: SparkSession, note: Callable[[str], None]) -> None:
        """Start the writer in the background; ``note`` receives messages for users."""
        self.spark = spark
        self._note = note
        self._rows: list[_Row] = []
        # Whether a write failed, after which its rows may be in the log all the same.
        self._again = False
        self._adding = threading.Lock()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._is_behind = False
        self._thread = threading.Thread(target=self._write_on, name="commit-log", daemon=True)

        self._thread.start()

    def close(self) -> None:
        """Stop the writer without a flush: each stream flushes when it stops."""
        self._closing.set()
        self._thread.join()

    def add(self, lease: Lease, stream: Stream, result: BatchResult) -> None:
        """Add a commit that was just published under ``lease``, to be written soon."""
        with self._adding:
            self._rows.append((lease, stream, result))

    def flush(self, stream: Stream | None = None) -> None:
        """Write all commits that were added so far.

        Rows that cannot be written are kept for the next flush; an unreadable table delays only
        its own rows. Raises an error only if it concerns ``stream``; None for any stream.
        """
        with self._writing:
            with self._adding:
                taken, self._rows = self._rows, []
            kept, owned = list[_Row](), list[_Row]()
            failed: dict[str, Exception] = {}

            def published() -> list[tuple[Stream, BatchResult]]:
                # Called again after a conflict: discard the results of the last attempt.
                kept.clear()
                owned.clear()
                failed.clear()
                for lease, rows in _by_lease(taken):
                    try:
                        # The new writer of a table has logged its commits from the snapshots.
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
                # Log it once: a full disk or an unavailable catalog stops the streams too.
                if not self._is_behind:
                    text = reason_text(error)
                    self._note(f"the commit log is behind and will catch up: {text}")
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
