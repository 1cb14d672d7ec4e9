"""When a writer counts as gone."""

from __future__ import annotations

import os
import time

import psutil

from spark_ingest.lease import _Holder

LONG_AGO = time.time() - 3600


def holder(
    host: str | None = None, pid: int | None = None, renewed_at: float = 0
) -> _Holder:
    import socket

    started = psutil.Process().create_time()
    return _Holder(
        "b", host or socket.gethostname(), pid or os.getpid(), started, renewed_at
    )


def test_a_process_of_this_machine_is_asked_itself() -> None:
    assert holder().alive(last_write=LONG_AGO)
    # Another process that got its number later is not it.
    assert not holder(pid=os.getppid()).alive(last_write=time.time())


def test_a_writer_elsewhere_is_alive_while_it_commits_or_renews() -> None:
    assert holder(host="elsewhere", renewed_at=LONG_AGO).alive(last_write=time.time())
    assert holder(host="elsewhere", renewed_at=time.time()).alive(last_write=LONG_AGO)
    assert not holder(host="elsewhere", renewed_at=LONG_AGO).alive(last_write=LONG_AGO)
