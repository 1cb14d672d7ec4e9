"""Progress output of a running ingest: a live table, or one line per batch."""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table


@dataclass(frozen=True)
class BatchReport:
    """One committed batch of one stream.

    Attributes:
        rows: Records written to bronze.
        quarantined: Records written to quarantine.
        value_bytes: Bytes of the values.
        seconds: Wall time of the batch.
        lag: Records on the broker that are not committed yet; None if the broker is unavailable.
    """

    stream: str
    table: str
    commit_id: int
    rows: int
    quarantined: int
    value_bytes: int
    seconds: float
    lag: int | None


class Progress(AbstractContextManager["Progress"]):
    """Receives reports of running streams; a context manager."""

    def __exit__(self, *_: object) -> None:
        return None

    @abstractmethod
    def batch(self, report: BatchReport) -> None:
        """A batch was committed."""

    @abstractmethod
    def note(self, text: str) -> None:
        """A message for users, such as waiting or stopping."""

    def waiting(self, stream: str, text: str) -> None:
        """A stream waits for an unavailable service."""
        self.note(f"{stream}: {text}")

    def restarted(self, stream: str, reason: str) -> None:
        """A stream is restarted, at once or after a pause; ``reason`` is a metric label."""

    def up(self, stream: str, is_up: bool) -> None:
        """A stream has started or stopped."""


class LineProgress(Progress):
    """One line of JSON for each batch on standard output; notes on standard error."""

    def batch(self, report: BatchReport) -> None:
        line = {
            "event": "batch",
            "stream": report.stream,
            "commit_id": report.commit_id,
            "rows": report.rows,
            "quarantined": report.quarantined,
            "rows_per_second": round(_rate(report.rows + report.quarantined, report.seconds)),
            "mb_per_second": round(_rate(report.value_bytes, report.seconds) / 1e6, 2),
            "seconds": round(report.seconds, 2),
            "lag": report.lag,
        }
        print(json.dumps(line), flush=True)

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class LiveProgress(Progress):
    """A live table on a terminal with a row per stream, updated after each batch."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False)
        self._last: dict[str, BatchReport] = {}
        self._rows: dict[str, int] = {}
        self._quarantined: dict[str, int] = {}

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def batch(self, report: BatchReport) -> None:
        self._last[report.stream] = report
        self._rows[report.stream] = self._rows.get(report.stream, 0) + report.rows
        before = self._quarantined.get(report.stream, 0)
        self._quarantined[report.stream] = before + report.quarantined
        self._live.update(self._table(), refresh=True)

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)

    def _table(self) -> Table:
        table = Table("table", "commit", "rows", "quarantined", "rows/s", "MB/s", "batch", "lag")
        for column in table.columns[1:]:
            column.justify = "right"
        for stream, last in sorted(self._last.items()):
            table.add_row(
                last.table,
                str(last.commit_id),
                f"{self._rows[stream]:,}",
                f"{self._quarantined[stream]:,}",
                f"{_rate(last.rows + last.quarantined, last.seconds):,.0f}",
                f"{_rate(last.value_bytes, last.seconds) / 1e6:,.1f}",
                f"{last.seconds:.1f} s",
                "?" if last.lag is None else f"{last.lag:,}",
            )
        return table


def open_progress() -> Progress:
    """A live table on a terminal, lines otherwise."""
    return LiveProgress() if sys.stderr.isatty() and sys.stdout.isatty() else LineProgress()


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0
