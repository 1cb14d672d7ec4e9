"""Metrics as lines of which CloudWatch Logs makes metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_ingest.streaming import cloudwatch
from spark_ingest.streaming.cloudwatch import CloudWatchLines
from spark_ingest.streaming.metrics import MetricsProgress
from spark_ingest.streaming.progress import BatchReport, LineProgress
from spark_ingest.streaming.supervise import Reason

REPORT = BatchReport("shop.orders", "bronze.shop__orders", 7, 90, 10, 4096, 0.4, 25)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The lines of metrics since the last look, by stream."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {line["stream"]: line for line in lines if "_aws" in line}


def test_each_stream_has_a_line_with_what_came_since_the_last_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = MetricsProgress(LineProgress(), ["shop.orders", "shop.idle"], "", None)
    lines = CloudWatchLines(metrics.registry, "Millrace")
    metrics.up("shop.orders", True)
    metrics.restarted("shop.orders", Reason.MOVED)
    metrics.restarted("shop.orders", Reason.FAILURE)
    metrics.batch(REPORT)
    metrics.batch(REPORT)
    lines.print()
    found = printed(capsys)
    line = found["shop.orders"]
    assert (line["records"], line["quarantined"], line["commits"]) == (180, 20, 2)
    assert (line["restarts"], line["lag_records"], line["stream_up"]) == (2, 25, 1)
    (described,) = line["_aws"]["CloudWatchMetrics"]
    assert (described["Namespace"], described["Dimensions"]) == ("Millrace", [["stream"]])
    # CloudWatch refuses a line that lacks a metric that it names.
    assert {one["Name"] for one in described["Metrics"]} == line.keys() - {"_aws", "stream"}
    assert line["_aws"]["Timestamp"] > 1.7e12
    assert found["shop.idle"]["records"] == found["shop.idle"]["stream_up"] == 0

    metrics.batch(REPORT)
    lines.print()
    line = printed(capsys)["shop.orders"]
    assert (line["records"], line["commits"], line["restarts"], line["stream_up"]) == (90, 1, 0, 1)


def test_what_came_last_is_printed_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloudwatch, "_SECONDS", 600)
    with MetricsProgress(LineProgress(), ["shop.orders"], "", None) as metrics:
        with CloudWatchLines(metrics.registry, "Millrace"):
            metrics.batch(REPORT)
        assert printed(capsys)["shop.orders"]["records"] == 90
