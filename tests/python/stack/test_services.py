"""Services of a real sandbox: started once, known again, stopped whole, data kept.

Fails when a service starts twice, stays behind, listens beyond 127.0.0.1 or loses its data.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox.processes import process
from sandbox.processes.process import ProcessRecord, read_record
from sandbox.services import stack as services
from sandbox.services.kafka import admin, missing_topics
from sandbox.services.registry import client, missing_subjects
from sandbox.services.stack import SERVICES, State
from sandbox.settings import Home, save_settings, with_ports
from sandbox.streams import STREAMS
from spark_ingest.errors import ConfigurationError
from tests.python.conftest import Stack, free_ports, make_home, program_environment

# What plain `sandbox up` starts.
STARTED = {name: each for name, each in SERVICES.items() if not each.is_asked_for}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A sandbox for these tests alone: they kill its services."""
    home = make_home(tmp_path_factory.mktemp("own home"))
    try:
        yield Stack(home, program_environment(home))
    finally:
        services.down(home)


def records(home: Home) -> dict[str, ProcessRecord]:
    found = {name: read_record(each.folder(home)) for name, each in STARTED.items()}
    return {name: record for name, record in found.items() if record is not None}


def living(pids: list[int]) -> list[int]:
    """Those that still run; a zombie has ended and only waits for its parent."""
    running = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return [each.pid for each in running if each.status() != psutil.STATUS_ZOMBIE]


def states(home: Home) -> dict[str, State]:
    return {found.service.name: found.state for found in services.status(home)}


def files_of(home: Home) -> dict[str, int]:
    """The files that `up` writes, by their time of change."""
    return {
        str(file): file.stat().st_mtime_ns
        for file in (home.env_file, home.settings_file, home.spark_conf / "spark-defaults.conf")
    }


@pytest.mark.nightly
def test_a_second_up_changes_nothing(own: Stack) -> None:
    own.run("sandbox", "up")
    first, written = records(own.home), files_of(own.home)

    second = own.run("sandbox", "up")

    found = states(own.home)
    assert {name for name, state in found.items() if state is State.READY} == {"kafka", "registry"}
    assert set(found.values()) == {State.READY, State.STOPPED}
    assert records(own.home) == first
    assert files_of(own.home) == written
    assert "started" not in second.stdout
    assert "made" not in second.stderr


def test_up_makes_every_topic_and_subject_and_sets_backward(own: Stack) -> None:
    own.run("sandbox", "up")

    assert missing_topics(own.home) == []
    assert missing_subjects(own.home) == []
    assert client(own.home).get_config().compatibility_level == "BACKWARD"
    topics = admin(own.home).list_topics(timeout=10).topics
    assert {s.topic: len(topics[s.topic].partitions) for s in STREAMS.values()} == {
        s.topic: s.partitions for s in STREAMS.values()
    }


def test_topics_keep_records_of_any_age(own: Stack) -> None:
    from confluent_kafka.admin import ConfigResource

    own.run("sandbox", "up")
    topic = next(iter(STREAMS.values())).topic
    broker = admin(own.home)

    (answer,) = broker.describe_configs([ConfigResource("topic", topic)]).values()

    assert answer.result()["retention.ms"].value == "-1"


def test_all_servers_listen_on_the_loopback_only(own: Stack) -> None:
    own.run("sandbox", "up")

    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for record in records(own.home).values()
        for connection in psutil.Process(record.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }

    assert listening == {"127.0.0.1"}


@pytest.mark.nightly
def test_a_killed_broker_is_shown_with_its_log_and_keeps_its_records(own: Stack) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    own.run("sandbox", "up")
    topic = next(iter(STREAMS.values())).topic
    producer = Producer({"bootstrap.servers": own.home.bootstrap_servers, "acks": "all"})
    producer.produce(topic, b"kept", partition=0)
    assert producer.flush(30) == 0
    del producer  # or it would complain about the broker that dies next
    record = records(own.home)["kafka"]

    os.kill(record.pid, signal.SIGKILL)
    while living([record.pid]):
        time.sleep(0.02)
    status = own.run("sandbox", "status", check=False)
    again = own.run("sandbox", "up")

    assert status.returncode == 1
    assert "died     kafka" in status.stdout
    assert "registry" in status.stdout
    last = Path(record.log).read_bytes()[record.log_start :].decode().splitlines()
    assert any(f"| {line}" in status.stderr for line in last)
    assert "started  kafka" in again.stdout
    assert "running  registry" in again.stdout
    reader = Consumer({"bootstrap.servers": own.home.bootstrap_servers, "group.id": "test"})
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (0, 1)
    reader.close()


def test_down_leaves_no_process_and_up_finds_the_data(own: Stack) -> None:
    own.run("sandbox", "up")
    pids = [record.pid for record in records(own.home).values()]
    schemas = client(own.home).get_subjects()

    own.run("sandbox", "down")

    assert living(pids) == []
    assert all(process.port_is_free(port) for port in own.home.ports.values())
    assert set(states(own.home).values()) == {State.STOPPED}
    own.run("sandbox", "up")
    assert client(own.home).get_subjects() == schemas
    assert missing_topics(own.home) == []


@pytest.mark.nightly
def test_two_ups_at_once_start_each_service_once(own: Stack) -> None:
    own.run("sandbox", "down")
    printed: list[str] = []
    both = [
        threading.Thread(target=lambda: printed.append(own.run("sandbox", "up").stdout))
        for _ in range(2)
    ]

    for each in both:
        each.start()
    for each in both:
        each.join()

    assert "".join(printed).count("started  kafka") == 1
    assert "".join(printed).count("started  registry") == 1
    assert {states(own.home)[name] for name in STARTED} == {State.READY}


@pytest.mark.nightly
def test_an_interrupted_up_stops_what_it_started(own: Stack) -> None:
    own.run("sandbox", "down")
    program = Path(sys.executable).parent / "sandbox"
    with subprocess.Popen(
        [str(program), "up"], env=own.env, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as up:
        deadline = time.monotonic() + 60
        while len(records(own.home)) < len(STARTED) and time.monotonic() < deadline:
            time.sleep(0.02)
        pids = [record.pid for record in records(own.home).values()]
        up.send_signal(signal.SIGINT)
        up.wait(60)

    assert len(pids) == len(STARTED)
    assert up.returncode not in (0, None)
    assert living(pids) == []
    assert records(own.home) == {}


@pytest.mark.nightly
def test_a_taken_port_is_reported_with_its_holder_and_another_port_works(own: Stack) -> None:
    own.run("sandbox", "down")
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", own.home.ports["kafka"]))
        squatter.listen()

        refused = own.run("sandbox", "up", "kafka", check=False)
        moved = own.run("sandbox", "up", "kafka", "--port", f"kafka={make_port(own.home)}")

    assert refused.returncode == 2
    assert f"taken by pid {os.getpid()}" in refused.stderr
    assert "--port kafka=" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "started  kafka" in moved.stdout
    # The moved port is remembered; put it back for the tests that follow.
    own.run("sandbox", "down")
    save_settings(own.home)


def make_port(home: Home) -> int:
    """A free port that is none of the sandbox's."""
    used = home.ports.values()
    return next(port for port in free_ports(len(used) + 1) if port not in used)


def test_other_ports_are_refused_while_the_service_runs(own: Stack) -> None:
    own.run("sandbox", "up")

    with pytest.raises(ConfigurationError, match="sandbox down"):
        services.up(with_ports(own.home, {**own.home.ports, "kafka": make_port(own.home)}))


@pytest.mark.nightly
def test_logs_and_doctor_know_the_services(own: Stack) -> None:
    own.run("sandbox", "up")

    logs = own.run("sandbox", "logs", "registry", "--lines", "3").stdout
    doctor = own.run("sandbox", "doctor")

    assert len(logs.splitlines()) == 3
    assert "FAILED" not in doctor.stdout
    for line in ("kafka: ready", "registry: ready", "topics: all there", "schemas: all there"):
        assert line in doctor.stdout


@pytest.mark.nightly
def test_doctor_names_a_missing_topic_and_up_makes_it(own: Stack) -> None:
    own.run("sandbox", "up")
    topic = next(iter(STREAMS.values())).topic
    broker = admin(own.home)
    for future in broker.delete_topics([topic]).values():
        future.result()
    deadline = time.monotonic() + 30
    while missing_topics(own.home) == [] and time.monotonic() < deadline:
        time.sleep(0.1)

    doctor = own.run("sandbox", "doctor", check=False)
    up = own.run("sandbox", "up")

    assert doctor.returncode == 1
    assert f"topic {topic} missing: `sandbox up`" in doctor.stdout
    assert f"created topic {topic}" in up.stderr
    assert missing_topics(own.home) == []


def test_reset_removes_data_and_lake_and_keeps_the_ports(own: Stack) -> None:
    own.run("sandbox", "up")
    kept = own.home.settings_file.read_text()

    refused = own.run("sandbox", "reset", check=False, stdin="")
    own.run("sandbox", "reset", "--yes")

    assert refused.returncode == 2
    assert not own.home.services.exists()
    assert list(own.home.lake.iterdir()) == []
    assert own.home.settings_file.read_text() == kept
    assert set(states(own.home).values()) == {State.STOPPED}
