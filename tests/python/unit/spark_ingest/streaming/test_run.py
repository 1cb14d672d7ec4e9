"""How a run is asked for: how often, how fast, from where."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spark_ingest.cli.streams import begin_of
from spark_ingest.errors import ConfigurationError
from spark_ingest.streaming.run import RunSettings


def test_where_to_begin_is_an_end_or_a_time() -> None:
    assert begin_of("earliest") == "earliest"
    assert begin_of("latest") == "latest"
    nine = datetime(2026, 1, 31, 9, tzinfo=UTC)
    assert begin_of("2026-01-31T09:00:00") == nine
    assert begin_of("2026-01-31T10:00:00+01:00") == nine
    with pytest.raises(ConfigurationError, match="--from noon: earliest, latest, or"):
        begin_of("noon")


def test_batches_come_sooner_than_records_shall_be_visible() -> None:
    """A record waits for the next batch, and that takes time."""
    assert RunSettings(None, 10, 0).interval is None
    assert RunSettings(10.0, 10, 0).interval == pytest.approx(9.5)
    assert RunSettings(1.0, 10, 0).interval == pytest.approx(0.5)
    assert RunSettings(0.5, 10, 0).interval == pytest.approx(0.25)


def test_a_batch_is_no_larger_than_the_rate_allows() -> None:
    assert RunSettings(10.0, 1000, 0).batch_records == 1000
    assert RunSettings(10.0, 1000, 0, max_rate=50).batch_records == 500
    assert RunSettings(0.5, 1000, 0, max_rate=50).batch_records == 50
    assert RunSettings(None, 1000, 0, max_rate=50).batch_records == 50
    assert RunSettings(60.0, 1000, 0, max_rate=50).batch_records == 1000
