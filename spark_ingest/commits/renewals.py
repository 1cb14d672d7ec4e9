"""One renewal for all leases of a process.

A lease names its process. While any of them is on a table without commits, the process renews
all of them in one property of the commit log: a renewal of each would cost a metadata commit per
table and two minutes, which for 300 idle tables are 216,000 a day. Renewals only show others
that the process is alive; what excludes a second writer is the fence of
:mod:`spark_ingest.commits.lease`.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from typing import Any, Protocol

from pyspark.errors import AnalysisException

from spark_ingest.commits import commit_log
from spark_ingest.lake.jvm import TROUBLE, Jvm
from spark_ingest.lake.table_change import Step, change_table, commit_of

QUIET_SECONDS = 120.0
"""Seconds without a commit after which a lease needs a renewal; the interval of renewals, too."""
# How often is checked whether a renewal is due.
_SECONDS = 5.0
_AGAIN_SECONDS = 10.0
# A process that was silent for so long has no lease any more.
_FORGET_SECONDS = 86_400.0
_PREFIX = "millrace.renewed."


class Renewable(Protocol):
    """A lease, as far as its renewal is concerned."""

    @property
    def branch(self) -> str:
        """The branch of its writer, which no other lease has."""

    def is_quiet(self) -> bool:
        """Whether its writer has not committed for a while."""

    def lapsing_since(self) -> float | None:
        """Since when it must not be renewed, epoch seconds; None if it must be."""


class Renewals:
    """Renews the leases of this process in the background while it is entered.

    A batch, the pause of a rate limit, or the start of some hundred streams may take longer than
    the timeout of a lease.
    """

    def __init__(self, jvm: Jvm) -> None:
        self.process = secrets.token_hex(6)
        self._jvm = jvm
        self._leases: dict[str, Renewable] = {}
        self._renew_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name="renewals", daemon=True)

    def __enter__(self) -> Renewals:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._thread.join()

    def add(self, lease: Renewable) -> None:
        """Renew a lease from now on."""
        self._leases[lease.branch] = lease

    def remove(self, lease: Renewable) -> None:
        """Do not renew a lease any more, because it was released."""
        self._leases.pop(lease.branch, None)

    def renew(self) -> None:
        """Renew all leases in one commit, if one of them needs it and that is due.

        A renewal that fails is retried shortly after.
        """
        leases = tuple(self._leases.values())
        now = time.monotonic()
        if now < self._renew_at or not any(lease.is_quiet() for lease in leases):
            return
        try:
            change_table(self._jvm, commit_log.TABLE, lambda log: self._renewing(log, leases))
            self._renew_at = now + QUIET_SECONDS
        except TROUBLE:
            self._renew_at = now + _AGAIN_SECONDS

    def _renew_on(self) -> None:
        while not self._stopping.wait(_SECONDS):
            self.renew()

    def _renewing(self, log: Any, leases: tuple[Renewable, ...]) -> Step:
        lapsing = {lease.branch: lease.lapsing_since() for lease in leases}
        now = time.time()
        renewal = {
            "at": now,
            "lapsing": {branch: at for branch, at in lapsing.items() if at is not None},
        }
        update = log.updateProperties().set(f"{_PREFIX}{self.process}", json.dumps(renewal))
        for key, text in log.properties().items():
            if key.startswith(_PREFIX) and now - json.loads(text)["at"] > _FORGET_SECONDS:
                update = update.remove(key)
        return commit_of(update)


def renewed_at(jvm: Jvm, process: str, branch: str) -> float:
    """When a process last renewed the lease of a branch, epoch seconds; 0 if it never did."""
    try:
        text = jvm.iceberg_table(commit_log.TABLE).properties().get(f"{_PREFIX}{process}")
    except AnalysisException:
        # The log is created before the first stream starts.
        return 0.0
    if text is None:
        return 0.0
    renewal = json.loads(text)
    return float(renewal["lapsing"].get(branch, renewal["at"]))
