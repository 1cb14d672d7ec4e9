"""When a writer counts as gone."""

from __future__ import annotations

import os
import socket
import time

import psutil
import pytest

from spark_ingest.commits.lease import Holder

LONG_AGO = time.time() - 3600


def holder(
    host: str | None = None,
    age: float = 0,
    renewed_at: float = 0,
    machine: str = "",
    writer_id: str | None = None,
) -> Holder:
    """This process as a writer, said to have started ``age`` seconds before it did."""
    started = psutil.Process().create_time() - age
    here = host or socket.gethostname()
    return Holder("b", here, os.getpid(), started, renewed_at, machine, writer_id)


def test_a_process_of_this_machine_is_asked_itself() -> None:
    assert holder().alive(last_write=LONG_AGO)
    # A process that got the number of an earlier one is not that one.
    assert not holder(age=100).alive(last_write=time.time())


def test_a_writer_elsewhere_is_alive_while_it_commits() -> None:
    now = time.time()
    assert holder("elsewhere", renewed_at=LONG_AGO).alive(last_write=now)
    assert holder("elsewhere", renewed_at=now).alive(last_write=LONG_AGO)
    assert not holder("elsewhere", renewed_at=LONG_AGO).alive(last_write=LONG_AGO)


def test_a_writer_in_another_container_of_the_same_host_name_is_not_asked_by_its_pid() -> None:
    elsewhere = holder(age=100, machine="another boot pid:[1]")
    assert elsewhere.alive(last_write=time.time())
    assert not elsewhere.alive(last_write=LONG_AGO)


def test_a_writer_of_this_host_is_gone_with_a_reboot(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(psutil, "boot_time", lambda: now)
    assert not holder(machine="the boot before pid:[1]").alive(last_write=now - 60)
    assert holder("elsewhere", machine="any").alive(last_write=now - 60)


def test_a_writer_with_the_same_id_is_the_predecessor() -> None:
    named = holder("elsewhere", writer_id="ingest-1")
    assert named.precedes(holder(writer_id="ingest-1"))
    assert not named.precedes(holder(writer_id="ingest-2"))
    # Of two that run at once the younger one gets the table, and keeps it.
    assert holder(age=100, writer_id="ingest-1").precedes(named)
    assert not named.precedes(holder(age=100, writer_id="ingest-1"))
    # Two writers without an id are not one.
    assert not holder("elsewhere").precedes(holder())
