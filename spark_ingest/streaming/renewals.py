"""Renews the leases of a run's streams, whatever these are doing.

A thread of its own: a batch may work for longer than a silent writer counts as alive, so may
the pause of a rate limit, and so may the start of some hundred streams, one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

# How often each lease is asked whether it is due.
_SECONDS = 5.0


class Renewable(Protocol):
    """What holds a lease."""

    def renew(self) -> None:
        """Renew the lease, where that is due; raises nothing."""


class Renewals:
    """Keeps the leases of a list's members, also of those added later, until it is stopped."""

    def __init__(self, holders: Sequence[Renewable]) -> None:
        """Begin to renew in the background.

        ``holders`` is looked at again each time.
        """
        self._holders = holders
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name="renewals", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the renewing."""
        self._stopping.set()
        self._thread.join()

    def _renew_on(self) -> None:
        while not self._stopping.wait(_SECONDS):
            for holder in tuple(self._holders):
                holder.renew()
