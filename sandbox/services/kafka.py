"""Kafka in KRaft mode: broker and controller in one process."""

from __future__ import annotations

import base64
import logging
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.processes.process import accepts
from sandbox.services.java_programs import java_command, properties_text
from sandbox.services.kafka_listeners import listeners, permissions, user_credentials
from sandbox.services.security import ADMIN, kafka_properties, write_secret
from sandbox.services.service import Service
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from sandbox.streams import Stream

# One broker: no internal topic can have a second replica, and few partitions start faster.
_INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


def admin(home: Home) -> AdminClient:
    """A client for the sandbox's broker that keeps its complaints to itself."""
    from confluent_kafka.admin import AdminClient

    quiet = logging.getLogger("sandbox.kafka")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    return AdminClient({**kafka_properties(home, ADMIN), "socket.timeout.ms": 5000}, logger=quiet)


def _folder(home: Home) -> Path:
    return KAFKA.folder(home)


def _properties(home: Home, data: Path) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        **listeners(home),
        "log.dirs": str(data),
        "num.partitions": "4",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
    }
    for topic in _INTERNAL_TOPICS:
        settings[f"{topic}.replication.factor"] = "1"
        settings[f"{topic}.num.partitions"] = "4"
        if topic != "offsets.topic":
            settings[f"{topic}.min.isr"] = "1"
    return properties_text(settings)


def _prepare(home: Home) -> None:
    folder = _folder(home)
    if "," in str(folder):
        raise ConfigurationError(
            f"SANDBOX_HOME is {home.path}: Kafka takes no comma in the path of its data"
        )
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    write_secret(folder / "server.properties", _properties(home, data))
    if not (data / "meta.properties").exists():
        _format(home, data)


def _format(home: Home, data: Path) -> None:
    """Make the data folder in one step: a killed format leaves nothing half made."""
    new = data.with_name("data.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(data, ignore_errors=True)
    file = data.with_name("format.properties")
    write_secret(file, _properties(home, new))
    arguments = ["format", "--standalone", "-t", _cluster_id(), "-c", str(file)]
    if home.secure:
        for credential in user_credentials(home):
            arguments += ["--add-scram", credential]
    java, *options = java_command("kafka", "kafka.tools.StorageTool", *arguments, heap="128m")
    # Everybody may read a command line: Java takes its own from a file as well.
    command_line = data.with_name("format.arguments")
    write_secret(command_line, "\n".join(map(_java_quoted, options)) + "\n")
    done = subprocess.run([java, f"@{command_line}"], capture_output=True, text=True, check=False)
    command_line.unlink()
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["it says nothing"]
        raise MillraceError(f"Kafka cannot format {data}: {lines[-1]}")
    file.unlink()
    new.rename(data)


def _java_quoted(argument: str) -> str:
    """An argument as Java's argument files write it."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _cluster_id() -> str:
    """A Kafka UUID: 16 bytes in URL-safe Base64, which may not begin like an option."""
    text = "-"
    while text.startswith("-"):
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text


def _command(home: Home) -> list[str]:
    file = _folder(home) / "server.properties"
    return java_command("kafka", "kafka.Kafka", str(file), heap="512m")


def _own_cluster_id(home: Home) -> str | None:
    try:
        lines = (_folder(home) / "data" / "meta.properties").read_text().splitlines()
    except OSError:
        return None
    return dict(line.split("=", 1) for line in lines if "=" in line).get("cluster.id")


def _is_ready(home: Home) -> bool:
    """Whether a broker answers for itself, and whether it is the one with our data."""
    if not accepts(home.ports["kafka"]):
        return False
    from confluent_kafka import KafkaException

    try:
        metadata = admin(home).list_topics(timeout=5)
    except KafkaException:
        return False
    return bool(metadata.brokers) and metadata.cluster_id == _own_cluster_id(home)


def missing_topics(home: Home) -> list[str]:
    """Topics of the streams that the broker does not have.

    Raises:
        ServiceUnavailable: The broker does not answer.
    """
    from sandbox.streams import STREAMS

    present = present_topics(home)
    return sorted({stream.topic for stream in STREAMS.values()} - present)


def present_topics(home: Home) -> set[str]:
    """The topics that the broker has.

    Raises:
        ServiceUnavailable: It does not answer.
    """
    from confluent_kafka import KafkaException

    try:
        return set(admin(home).list_topics(timeout=10).topics)
    except KafkaException as error:
        raise ServiceUnavailable(
            f"the Kafka broker at {home.bootstrap_servers} does not answer: `sandbox up`"
        ) from error


def end_offsets(home: Home, topic: str) -> dict[int, int]:
    """The end offset of each partition: how many records it has taken in its life.

    Raises:
        ServiceUnavailable: The broker does not answer, or has no such topic.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    client = Consumer({**kafka_properties(home, ADMIN), "group.id": "sandbox", "log_level": 0})
    try:
        found = client.list_topics(topic, timeout=10).topics[topic].partitions
        return {
            partition: client.get_watermark_offsets(TopicPartition(topic, partition), 10)[1]
            for partition in sorted(found)
        }
    except KafkaException as error:
        raise ServiceUnavailable(
            f"the Kafka broker at {home.bootstrap_servers} does not return the offsets of"
            f" {topic}: `sandbox doctor`"
        ) from error
    finally:
        client.close()


def _settle(home: Home) -> list[str]:
    """Create the streams' topics that are not there."""
    from sandbox.streams import STREAMS

    absent = set(missing_topics(home))
    if absent:
        create_topics(home, {one.topic: one.partitions for one in STREAMS.values()})
    _permit(home)
    return [f"topic {topic}" for topic in sorted(absent)]


def create_topic(home: Home, stream: Stream) -> None:
    """Create the topic of a stream that is none of the sandbox's own, where it is not there.

    Raises:
        ServiceUnavailable: The broker does not answer.
        MillraceError: It cannot create the topic.
    """
    create_topics(home, {stream.topic: stream.partitions})
    _permit(home, stream.topic)


def create_topics(home: Home, partitions: Mapping[str, int]) -> None:
    """Create the topics that are not there, each with so many partitions.

    Raises:
        ServiceUnavailable: The broker does not answer.
        MillraceError: It cannot create one of them.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    # Replayed events may be years old: with the default retention they would be gone in minutes,
    # and a row that does not change in a week.
    config = {"retention.ms": "-1", "cleanup.policy": "delete"}
    there = present_topics(home)
    topics = [
        NewTopic(topic, count, replication_factor=1, config=config)
        for topic, count in partitions.items()
        if topic not in there
    ]
    if not topics:
        return
    client = admin(home)  # must outlive its futures
    for topic, future in client.create_topics(topics, operation_timeout=30).items():
        try:
            future.result()
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise MillraceError(f"Kafka cannot create {topic}: {reason.str()}") from error


def _permit(home: Home, *further: str) -> None:
    """Let the users of a secure sandbox at the streams' topics, and at further ones.

    Who may not see a topic is not told that it does not exist: so the ingest user may also see
    those of captured tables, which nobody makes here.
    """
    if not home.secure:
        return
    from confluent_kafka import KafkaException

    from sandbox.streams import STREAMS, declared_topics, published_topics
    from spark_ingest.publish.transactions import PROGRESS_TOPIC

    client = admin(home)  # must outlive its futures
    written = {*further, *(stream.topic for stream in STREAMS.values())}
    wanted = permissions(
        written, [*further, *declared_topics().values()], [PROGRESS_TOPIC, *published_topics()]
    )
    for binding, future in client.create_acls(wanted).items():
        try:
            future.result()
        except KafkaException as error:
            raise MillraceError(
                f"Kafka cannot permit {binding.principal} {binding.name}: {error.args[0].str()}"
            ) from error


KAFKA = Service(
    name="kafka",
    title="Kafka broker and controller",
    parts=("kafka",),
    ports=("kafka", "kafka-controller"),
    secure_ports=("kafka-certificates",),
    prepare=_prepare,
    command=_command,
    is_ready=_is_ready,
    settle=_settle,
)
