"""Renews the leases of a run's streams in the background.

A batch, the pause of a rate limit, or the sequential start of some hundred streams may take
longer than the timeout of a lease.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

# How often each lease is checked for a due renewal.
_SECONDS = 5.0


class Renewable(Protocol):
    """A holder of a lease."""

    def renew(self) -> None:
        """Renew the lease if that is due; raises nothing."""


class Renewals:
    """Renews the leases of all members of a list until it is stopped."""

    def __init__(self, holders: Sequence[Renewable]) -> None:
        """Start the renewals in the background.

        ``holders`` is read each time, so members may be added later.
        """
        self._holders = holders
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name="renewals", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the renewals."""
        self._stopping.set()
        self._thread.join()

    def _renew_on(self) -> None:
        while not self._stopping.wait(_SECONDS):
            for holder in tuple(self._holders):
                holder.renew()
