"""Leases are renewed beside whatever the streams do."""

from __future__ import annotations

import threading

import pytest

from spark_ingest.streaming.renewals import Renewals


class Holder:
    def __init__(self) -> None:
        self.renewed = threading.Event()

    def renew(self) -> None:
        self.renewed.set()


def test_holders_that_come_later_are_renewed_too_while_the_others_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_ingest.streaming.renewals._SECONDS", 0.01)
    first, later = Holder(), Holder()
    holders = [first]
    renewals = Renewals(holders)
    assert first.renewed.wait(10)
    holders.append(later)
    # This thread does nothing for them, as in a batch or a pause.
    assert later.renewed.wait(10)
    renewals.stop()
    later.renewed.clear()
    assert not later.renewed.wait(0.05)
