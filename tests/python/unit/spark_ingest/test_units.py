"""Lengths of time as people write them."""

from __future__ import annotations

import pytest

from spark_ingest.errors import ConfigurationError
from spark_ingest.units import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("10m", 600), ("2 MIN", 120), ("1.5h", 5400), (" 7 d", 604800)],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert duration("--keep", text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "10", "s", "ten minutes", "2 weeks", "-1h", "9999999999d"])
def test_what_is_no_duration_is_refused_with_the_options_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^--keep {text}: a number and ms"):
        duration("--keep", text)
