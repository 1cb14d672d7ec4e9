"""Prometheus metrics of a running ingest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from spark_ingest.errors import ConfigurationError
from spark_ingest.streaming.progress import BatchReport, Progress
from spark_ingest.streaming.supervise import Reason

# Waits for an unavailable service have their own counter; waits for a new topic are not counted.
_RESTART_REASONS = tuple(
    reason for reason in Reason if reason not in (Reason.SERVICE, Reason.TOPIC)
)
# From a caught-up stream's small batch to the largest that a driver takes.
_BATCH_SECONDS = (0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120)


class MetricsProgress(Progress):
    """Counts reports, forwards them, and serves the metrics while it is entered."""

    def __init__(
        self, shown: Progress, streams: Iterable[str], host: str, port: int | None
    ) -> None:
        """Create the metrics.

        Every report is forwarded to ``shown``. The metrics of each of ``streams`` start at zero;
        those of other streams appear when they start. ``port`` 0 selects a free port; None
        serves nothing.
        """
        self._shown = shown
        self._host = host
        self._port = port
        self._stop: Callable[[], None] | None = None
        self.registry = CollectorRegistry()

        def counter(name: str, help_text: str) -> Counter:
            return Counter(name, help_text, ["stream"], registry=self.registry)

        def gauge(name: str, help_text: str) -> Gauge:
            return Gauge(name, help_text, ["stream"], registry=self.registry)

        self._records = counter("millrace_records", "Records landed in bronze.")
        self._quarantined = counter("millrace_quarantined", "Records quarantined.")
        self._bytes = counter("millrace_value_bytes", "Bytes of the values read.")
        self._commits = counter("millrace_commits", "Commits to the stream's table.")
        self._waits = counter("millrace_waits", "Times a batch waited for an unavailable service.")
        self._restarts = Counter(
            "millrace_restarts",
            "Restarts of the stream, by reason.",
            ["stream", "reason"],
            registry=self.registry,
        )
        self._up = gauge(
            "millrace_stream_up", "1 if the stream is running, 0 if it is paused or waits."
        )
        self._seconds = Histogram(
            "millrace_batch_seconds",
            "Wall time from a batch's start to its commit.",
            ["stream"],
            buckets=_BATCH_SECONDS,
            registry=self.registry,
        )
        self._lag = gauge("millrace_lag_records", "Records on the broker after the newest commit.")
        self._commit_id = gauge("millrace_commit_id", "The newest commit's id.")
        self._committed_at = gauge(
            "millrace_last_commit_timestamp_seconds", "Time of the newest commit."
        )
        counts = (
            self._records, self._quarantined, self._bytes, self._commits, self._waits,
            self._seconds, self._up,
        )  # fmt: skip
        self._counts = counts
        for stream in streams:
            self._begin(stream)

    def _begin(self, stream: str) -> None:
        for metric in self._counts:
            metric.labels(stream)
        for reason in _RESTART_REASONS:
            self._restarts.labels(stream, reason)

    @property
    def port(self) -> int:
        """The TCP port of the server; 0 without one."""
        return self._port or 0

    def __enter__(self) -> MetricsProgress:
        """Start the server.

        Raises:
            ConfigurationError: The port is in use, or the address is not local.
        """
        if self._port is not None:
            self._serve(self._port)
        self._shown.__enter__()
        return self

    def _serve(self, port: int) -> None:
        try:
            server, thread = start_http_server(port, addr=self._host, registry=self.registry)
        except OSError as error:
            raise ConfigurationError(
                f"--metrics-port {port} on {self._host}: {error.strerror}: use another port"
            ) from error
        self._port = server.server_port

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        self._stop = stop

    def __exit__(self, *raised: object) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None
        self._shown.__exit__(*raised)

    def batch(self, report: BatchReport) -> None:
        stream = report.stream
        self._records.labels(stream).inc(report.rows)
        self._quarantined.labels(stream).inc(report.quarantined)
        self._bytes.labels(stream).inc(report.value_bytes)
        self._commits.labels(stream).inc()
        self._seconds.labels(stream).observe(report.seconds)
        self._commit_id.labels(stream).set(report.commit_id)
        self._committed_at.labels(stream).set_to_current_time()
        if report.lag is not None:
            self._lag.labels(stream).set(report.lag)
        self._shown.batch(report)

    def note(self, text: str) -> None:
        self._shown.note(text)

    def waiting(self, stream: str, text: str) -> None:
        self._waits.labels(stream).inc()
        self._shown.waiting(stream, text)

    def restarted(self, stream: str, reason: str) -> None:
        self._restarts.labels(stream, reason).inc()
        self._shown.restarted(stream, reason)

    def up(self, stream: str, is_up: bool) -> None:
        self._begin(stream)
        self._up.labels(stream).set(is_up)
        self._shown.up(stream, is_up)
