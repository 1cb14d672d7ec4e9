"""Instants and spans as people write them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from sandbox.streams.times import as_text, instant_micros

MOMENT = 1_620_651_846_996_577  # 2021-05-10 13:04:06.996577 UTC


@pytest.mark.parametrize(
    "written",
    [
        "2021-05-10 13:04:06.996577+00",
        "2021-05-10 13:04:06.996577 +00:00",
        "2021-05-10T13:04:06.996577Z",
        "2021-05-10 13:04:06.996577 Z",
        "2021-05-10 13:04:06.996577",
        " 2021-05-10 15:04:06.996577+02:00 ",
        "2021-05-10 08:04:06.996577 -05",
        "1620651846.996577",
        "1620651846996577",
        "1620651846996577000",
        1620651846996577,
        Decimal("1620651846996.577"),
    ],
)
def test_all_spellings_of_an_instant_are_the_same_instant(written: str | int | Decimal) -> None:
    assert instant_micros(written) == MOMENT


def test_the_constant_above_is_right() -> None:
    moment = datetime(2021, 5, 10, 13, 4, 6, 996577, UTC)
    assert datetime.fromtimestamp(MOMENT // 10**6, UTC) == moment.replace(microsecond=0)


def test_epoch_seconds_and_milliseconds_are_distinguished_by_size() -> None:
    assert instant_micros("1620651846") == instant_micros("1620651846000")


def test_a_date_alone_is_its_midnight_in_utc() -> None:
    assert as_text(instant_micros("2021-05-10") // 1_000) == "2021-05-10T00:00:00.000Z"


def test_an_instant_before_1970_is_negative_and_rounded_down() -> None:
    assert instant_micros("1969-12-31 23:59:59.9999999+00") == -1


@pytest.mark.parametrize("written", ["", "yesterday", "10.05.2021", "2021-02-30", "nan", "1_0"])
def test_what_is_no_instant_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        instant_micros(written)


@pytest.mark.parametrize("written", ["20210510", "0", "99999999", -5])
def test_a_small_number_is_refused_rather_than_guessed(written: str | int) -> None:
    with pytest.raises(ValueError, match="too small"):
        instant_micros(written)
