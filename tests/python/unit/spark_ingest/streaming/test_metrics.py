"""What Prometheus sees of a run, scraped over HTTP."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sandbox.settings import PROJECT
from spark_ingest.errors import ConfigurationError
from spark_ingest.streaming.metrics import MetricsProgress
from spark_ingest.streaming.progress import BatchReport, LineProgress, Progress
from spark_ingest.streaming.supervise import Reason

REPORT = BatchReport("shop.orders", "bronze.shop__orders", 7, 90, 10, 4096, 0.4, 25)


def scraped(port: int) -> dict[str, float]:
    """The samples of the stream that has batches, by name (and bucket)."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        sample.name + sample.labels.get("le", "") + sample.labels.get("reason", ""): sample.value
        for family in families
        for sample in family.samples
        if sample.labels["stream"] == "shop.orders"
    }


def test_a_run_is_scraped(capsys: pytest.CaptureFixture[str]) -> None:
    with MetricsProgress(LineProgress(), ["shop.orders"], "127.0.0.1", 0) as metrics:
        assert scraped(metrics.port)["millrace_commits_total"] == 0
        metrics.batch(REPORT)
        metrics.batch(REPORT)
        metrics.waiting("shop.orders", "the registry is away; waiting")
        metrics.restarted("shop.orders", Reason.MOVED)
        metrics.up("shop.orders", True)
        found = scraped(metrics.port)
        port = metrics.port
    assert found["millrace_records_total"] == 180
    assert found["millrace_quarantined_total"] == 20
    assert found["millrace_value_bytes_total"] == 8192
    assert found["millrace_commits_total"] == 2
    assert found["millrace_waits_total"] == 1
    assert found["millrace_restarts_totalmoved"] == 1
    assert found["millrace_restarts_totalfailure"] == 0
    assert found["millrace_stream_up"] == 1
    assert found["millrace_batch_seconds_bucket0.3"] == 0
    assert found["millrace_batch_seconds_bucket0.5"] == 2
    assert found["millrace_lag_records"] == 25
    assert found["millrace_commit_id"] == 7
    assert found["millrace_last_commit_timestamp_seconds"] > 1.7e9
    printed = capsys.readouterr()
    assert printed.out.count('"commit_id": 7') == 2
    assert "shop.orders: the registry is away; waiting\n" in printed.err
    with pytest.raises(urllib.error.URLError):
        scraped(port)


def test_a_port_that_is_taken_is_named_before_anything_runs() -> None:
    shown: Progress = LineProgress()
    with MetricsProgress(shown, [], "127.0.0.1", 0) as first:
        taken = MetricsProgress(shown, [], "127.0.0.1", first.port)
        with pytest.raises(ConfigurationError, match=f"--metrics-port {first.port} on"):
            taken.__enter__()


def test_a_stream_has_its_metrics_from_when_it_begins() -> None:
    with MetricsProgress(LineProgress(), [], "127.0.0.1", 0) as metrics:
        before = scraped(metrics.port)
        metrics.up("shop.orders", True)
        found = scraped(metrics.port)

    assert before == {}
    assert found["millrace_stream_up"] == 1
    assert found["millrace_restarts_totalperson"] == 0
    assert "millrace_restarts_totaltopic" not in found


def test_the_rules_of_prometheus_name_what_is_served() -> None:
    rules = yaml.safe_load((PROJECT / "deploy/prometheus/millrace.rules.yml").read_text())
    named = {
        name
        for group in rules["groups"]
        for rule in group["rules"]
        for name in re.findall(r"millrace_\w+", rule["expr"])
    }
    with MetricsProgress(LineProgress(), ["shop.orders"], "127.0.0.1", 0) as metrics:
        metrics.batch(REPORT)
        served = set(scraped(metrics.port))
    restarts = {f"millrace_restarts_total{reason}" for reason in ("person", "failure")}

    assert named
    assert named - {"millrace_restarts_total"} <= served
    assert restarts <= served
