"""When a writer counts as gone."""

from __future__ import annotations

import os
import socket
import time

import psutil

from spark_ingest.commits.lease import Holder

LONG_AGO = time.time() - 3600


def holder(host: str | None = None, age: float = 0, renewed_at: float = 0) -> Holder:
    """This process as a writer, said to have started ``age`` seconds before it did."""
    started = psutil.Process().create_time() - age
    return Holder("b", host or socket.gethostname(), os.getpid(), started, renewed_at)


def test_a_process_of_this_machine_is_asked_itself() -> None:
    assert holder().alive(last_write=LONG_AGO)
    # A process that got the number of an earlier one is not that one.
    assert not holder(age=100).alive(last_write=time.time())


def test_a_writer_elsewhere_is_alive_while_it_commits_or_renews() -> None:
    now = time.time()
    assert holder("elsewhere", renewed_at=LONG_AGO).alive(last_write=now)
    assert holder("elsewhere", renewed_at=now).alive(last_write=LONG_AGO)
    assert not holder("elsewhere", renewed_at=LONG_AGO).alive(last_write=LONG_AGO)
