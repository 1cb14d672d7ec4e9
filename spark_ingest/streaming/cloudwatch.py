"""Metrics as log lines in CloudWatch's embedded metric format, where nothing can scrape them.

CloudWatch Logs makes metrics of such lines by itself: the process needs no client, no credentials
and no port (AWS, "Embedded metric format specification").
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict

from prometheus_client import CollectorRegistry

_SECONDS = 60.0
# Names of samples, and of their metrics.
_COUNTERS = {
    "millrace_records_total": "records",
    "millrace_quarantined_total": "quarantined",
    "millrace_value_bytes_total": "value_bytes",
    "millrace_commits_total": "commits",
    "millrace_waits_total": "waits",
    "millrace_restarts_total": "restarts",
}
_GAUGES = {"millrace_lag_records": "lag_records", "millrace_stream_up": "stream_up"}
_UNITS = {"value_bytes": "Bytes", "stream_up": "None"}


class CloudWatchLines:
    """Prints a line of metrics for each stream, once a minute while it is entered, and at its end.

    Counters are printed as their increase since the last line: CloudWatch sums them.
    """

    def __init__(self, registry: CollectorRegistry, namespace: str) -> None:
        """Print the metrics of a registry, as those of a namespace of CloudWatch."""
        self._registry = registry
        self._namespace = namespace
        self._before: dict[tuple[str, str, str], float] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._print_on, name="cloudwatch", daemon=True)

    def __enter__(self) -> CloudWatchLines:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.set()
        self._thread.join()
        self.print()

    def print(self) -> None:
        """Print a line for each stream that has metrics."""
        now = round(time.time() * 1000)
        for stream, values in self._values().items():
            metrics = [{"Name": name, "Unit": _UNITS.get(name, "Count")} for name in values]
            described = {
                "Namespace": self._namespace,
                "Dimensions": [["stream"]],
                "Metrics": metrics,
            }
            aws = {"Timestamp": now, "CloudWatchMetrics": [described]}
            print(json.dumps({"_aws": aws, "stream": stream, **values}), flush=True)

    def _print_on(self) -> None:
        while not self._ending.wait(_SECONDS):
            self.print()

    def _values(self) -> dict[str, dict[str, float]]:
        """The values by stream and metric."""
        found = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
        for family in self._registry.collect():
            for sample in family.samples:
                stream = sample.labels["stream"]
                if name := _GAUGES.get(sample.name):
                    found[stream][name] = sample.value
                elif name := _COUNTERS.get(sample.name):
                    # Restarts have a counter for each reason.
                    place = (stream, name, sample.labels.get("reason", ""))
                    found[stream][name] += sample.value - self._before.get(place, 0.0)
                    self._before[place] = sample.value
        return found
