"""The stream's rows of the commit log, written a few seconds apart for all streams at once.

A row of its own for each commit would cost as much as a small batch. The log follows the
tables, so nothing is at stake: commits that a crash keeps out of it are added from the
snapshots at the next start.
"""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from spark_ingest import ledger
from spark_ingest.commit import BatchResult
from spark_ingest.errors import LeaseLost
from spark_ingest.lease import Lease
from spark_ingest.session import JAVA_ERRORS
from spark_ingest.sources import Stream

_SECONDS = 5.0


class CommitLog:
    """Takes the commits of all streams of a run, until it is closed."""

    def __init__(self, spark: SparkSession) -> None:
        """Begin to write in the background.

        Args:
            spark: A session on the lake.
        """
        self._spark = spark
        self._rows: list[tuple[Lease, Stream, BatchResult]] = []
        # Whether a write failed, so that its rows may be in the log all the same.
        self._again = False
        self._adding = threading.Lock()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._write_on, name="commit-log", daemon=True
        )

        self._thread.start()

    def close(self) -> None:
        """End the writing in the background; who publishes last flushes."""
        self._closing.set()
        self._thread.join()

    def add(self, lease: Lease, stream: Stream, result: BatchResult) -> None:
        """Take a commit that was just published, to be written soon.

        Args:
            lease: Under which it was published.
            stream: Whose it is.
            result: What it did.
        """
        with self._adding:
            self._rows.append((lease, stream, result))

    def flush(self) -> None:
        """Write what was added by now; all of it is in the log when this returns.

        Where the log cannot be written the rows are kept for the next time.
        """
        with self._writing:
            with self._adding:
                taken, self._rows = self._rows, []
            # Whoever took a table over has written its commits down from the snapshots.
            held = {lease for lease, *_ in taken if _is_held(lease)}
            rows = [
                (stream, result) for lease, stream, result in taken if lease in held
            ]
            if not rows:
                return
            try:
                ledger.log_commits(self._spark, rows, again=self._again)
                self._again = False
            except BaseException:
                self._again = True
                with self._adding:
                    self._rows = [*taken, *self._rows]
                raise

    def _write_on(self) -> None:
        while not self._closing.wait(_SECONDS):
            try:
                self.flush()
            except JAVA_ERRORS:
                # Kept for the next time; a full disk or a catalog that is away stops the
                # streams themselves, with the reason.
                continue


def _is_held(lease: Lease) -> bool:
    try:
        lease.check()
    except LeaseLost:
        return False
    return True
