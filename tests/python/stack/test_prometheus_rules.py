"""The rules for Prometheus, by Prometheus itself, on what a run serves.

Fails when Prometheus does not take a rule, or a rule does not see what it is there for.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from sandbox.settings import PROJECT
from spark_ingest.streaming.metrics import MetricsProgress
from spark_ingest.streaming.progress import BatchReport, LineProgress
from spark_ingest.streaming.supervise import Reason
from tests.python.conftest import free_ports
from tests.python.programs import ran
from tests.python.stack.conftest import wait_for

RULES = PROJECT / "deploy/prometheus/millrace.rules.yml"
STREAM = "shop.orders"
QUARANTINED = BatchReport(STREAM, "bronze.shop__orders", 7, 90, 10, 4096, 0.4, 25)

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no Prometheus: install the package prometheus"
)


@pytest.fixture
def metrics() -> Iterator[MetricsProgress]:
    """A run that serves its metrics."""
    with MetricsProgress(LineProgress(), [STREAM], "127.0.0.1", 0) as served:
        yield served


@pytest.fixture
def prometheus(tmp_path: Path, metrics: MetricsProgress) -> Iterator[str]:
    """Prometheus on that run, each second; its address."""
    (port,) = free_ports(1)
    config = tmp_path / "prometheus.yml"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(RULES)],
                "scrape_configs": [
                    {
                        "job_name": "millrace",
                        "static_configs": [{"targets": [f"127.0.0.1:{metrics.port}"]}],
                    }
                ],
            }
        )
    )
    program = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "stderr").open("w"),
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        program.terminate()
        program.wait(30)


def asked(address: str, path: str, **parameters: str) -> dict[str, Any]:
    """What Prometheus answers; nothing while it is starting."""
    try:
        answer = httpx2.get(f"{address}/api/v1/{path}", params=parameters)
    except httpx2.HTTPError:
        return {}
    return dict(answer.json()["data"]) if answer.is_success else {}


def alerts(address: str) -> dict[str, str]:
    """What Prometheus alerts of, or is about to: the state by the rule's name."""
    found = asked(address, "alerts").get("alerts", [])
    return {alert["labels"]["alertname"]: alert["state"] for alert in found}


def test_prometheus_takes_every_rule() -> None:
    done = ran(["promtool", "check", "rules", str(RULES)])

    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_see_what_a_run_serves(metrics: MetricsProgress, prometheus: str) -> None:
    metrics.up(STREAM, True)
    # An increase is from one scrape to another.
    wait_for(lambda: is_scraped(prometheus))
    assert "MillraceStreamDown" not in alerts(prometheus)

    metrics.up(STREAM, False)
    metrics.batch(QUARANTINED)
    metrics.restarted(STREAM, Reason.FAILURE)
    for _ in range(9):
        metrics.waiting(STREAM, "the registry is away")

    expected = {
        "MillraceStreamDown": "pending",
        "MillraceStreamRestarts": "firing",
        "MillraceServiceAway": "pending",
        "MillraceQuarantine": "firing",
    }
    wait_for(lambda: alerts(prometheus) == expected, 60)


def test_a_run_that_is_gone_is_missed(metrics: MetricsProgress, prometheus: str) -> None:
    wait_for(lambda: is_scraped(prometheus))
    metrics.__exit__(None, None, None)

    wait_for(lambda: alerts(prometheus).get("MillraceIngestGone") == "pending", 60)


def is_scraped(address: str) -> bool:
    return bool(asked(address, "query", query="up == 1").get("result"))
