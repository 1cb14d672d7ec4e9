"""The options of `sandbox produce`: what is refused, and when events happen."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandbox.events.produce import app, event_times, records_per_second
from sandbox.events.sender import up_to
from sandbox.streams.generator import generators
from sandbox.streams.timeline import LATEST_MILLIS, ON_TIME, Record
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

HOUR = 3_600_000


def produce(*words: str) -> None:
    """Run `sandbox produce` in this process; what it raises is raised."""
    CliRunner().invoke(app, words, catch_exceptions=False)


def now() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize(("written", "rate"), [("500/s", 500.0), ("0.5", 0.5), (" 7 /s", 7.0)])
def test_rates_are_records_per_second(written: str, rate: float) -> None:
    assert records_per_second(written) == rate


@pytest.mark.parametrize("written", ["", "fast", "0", "-1/s", "nan", "inf", "5/min"])
def test_what_is_no_rate_is_refused(written: str) -> None:
    with pytest.raises(ConfigurationError, match="--rate"):
        records_per_second(written)


def test_a_counted_run_ends_now_also_with_late_records() -> None:
    for late, delay in ((0.0, 2_000), (0.1, LATEST_MILLIS)):
        begin, step = event_times(100, None, None, None, late)
        assert step == 2 * HOUR / 100
        assert abs(begin + 2 * HOUR + delay - now()) < 5_000


def test_a_run_without_end_happens_while_it_is_sent() -> None:
    begin, step = event_times(None, 50.0, None, None, 0.0)
    # Its records are stamped up to two seconds later, and sent at once.
    assert 2_000 <= now() - begin < 7_000
    assert step == 20.0


def test_start_and_span_say_when_events_happen() -> None:
    assert event_times(60, None, "2026-01-05 09:00", "1h", 0.0) == (1_767_603_600_000, 60_000.0)


@pytest.mark.parametrize(
    ("count", "start", "span", "reason"),
    [
        (5, "soon", None, "--start 'soon' is not a time"),
        (5, None, "long", "--span long: a number and ms"),
        (5, None, "0s", "--span 0s: must be at least a millisecond"),
        (5, None, "0.1ms", "--span 0.1ms: must be at least a millisecond"),
        (5, "2190-01-01", None, "more than an hour ahead"),
        (5, "1969-12-31", "1h", "before 1970"),
        (5, None, "99999d", "before 1970"),
        (None, None, "1h", "--span needs --count"),
    ],
)
def test_times_that_kafka_would_refuse_are_refused(
    count: int | None, start: str | None, span: str | None, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        event_times(count, 5.0, start, span, 0.0)


def test_shares_beyond_the_whole_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="exceed 1 together"):
        produce("pagila", "--late", "0.6", "--bad", "0.5")
    with pytest.raises(ConfigurationError, match=r"--late 0\.5 and --wrong 0\.6 exceed 1"):
        produce("smoothies", "--late", "0.5", "--wrong", "0.6")


def test_a_chunk_of_a_paced_stream_has_so_many_events_and_what_goes_beside_them() -> None:
    event = Record(b"", b"", 0, ON_TIME)
    stock = Record(b"", b"", 0, ON_TIME, "demo.inventories")
    records = iter([stock, stock, event, stock, event, stock, event, stock])
    assert up_to(records, 2) == [stock, stock, event, stock, event]
    assert up_to(records, 2) == [stock, event, stock]
    assert up_to(records, 2) == []


@pytest.mark.parametrize("command", generators())
def test_without_a_broker_it_says_so_at_once_with_the_fix(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.toml").write_text("[ports]\nkafka = 1024\n")
    monkeypatch.setenv("SANDBOX_HOME", str(tmp_path))
    began = time.monotonic()
    with pytest.raises(ServiceUnavailable, match=r"127\.0\.0\.1:1024 .*`sandbox up`") as caught:
        produce(command)
    assert time.monotonic() - began < 10
    assert caught.value.exit_code == 2
